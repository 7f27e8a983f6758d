"""What runs inside a session's sandbox. Of ours it has what :mod:`~re_bench_environment.bundle` shows."""
