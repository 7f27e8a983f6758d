"""What runs inside a session's sandbox, beside two modules of re_bench.guest. Standard library only."""
