"""Test the sandbox ``user``: isolation by permissions, limits and clean-up."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from re_bench_landlock.other_user import OtherUser

from re_bench.limits import Limits
from re_bench.processes import temporary_directory
from re_bench.sandbox.process import Finished, run
from re_bench.sandbox.spec import SandboxSpec, SandboxUnavailableError

pytestmark = pytest.mark.integration

if os.geteuid() != 0:
    pytest.skip("NOT TESTED: only root can run programs as another user", allow_module_level=True)


def sh(script: str, **limits: int) -> Finished:
    return run(OtherUser(), ["sh", "-c", script], SandboxSpec(limits=Limits(wall_s=100, **limits)))


def test_each_program_has_a_new_user_without_capabilities() -> None:
    users = {sh("id -u; id -g; id -G").stdout for _time in range(2)}
    assert len(users) == 2
    for text in users:
        assert len(set(text.split())) == 1
        assert int(text.split()[0]) >= 1 << 30
    status = sh("cat /proc/self/status").stdout
    none = "0" * 16
    for line in (f"CapInh:\t{none}", f"CapPrm:\t{none}", f"CapBnd:\t{none}", "NoNewPrivs:\t1"):
        assert line in status


def test_roots_files_and_processes_are_protected(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("truth")
    secret.chmod(0o600)
    assert sh(f"cat {secret} || cat /proc/{os.getpid()}/environ || echo x > {secret} || kill {os.getpid()}").status != 0
    assert secret.read_text() == "truth"


def test_environment_is_private_and_limits_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "truth")
    assert "truth" not in sh("env; tr '\\\\0' '\\\\n' < /proc/$PPID/environ").stdout
    assert sh("ulimit -n; ulimit -u", open_files=70, processes=9).stdout.split()[0] == "70"
    many = sh("for n in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 60 & done; wait", processes=8)
    assert "fork" in many.stderr.lower()


def test_detached_processes_end_with_the_program() -> None:
    mark = str(10**6 + time.monotonic_ns() % 10**6)
    loop = f"trap '' TERM HUP; while true; do sleep {mark}; done"
    began = time.monotonic()
    finished = sh(f'for n in 1 2 3; do (setsid sh -c "{loop}" &); done; sleep 0.3')
    assert (finished.status, time.monotonic() - began < 60) == (0, True)
    assert [path for path in Path("/proc").glob("[0-9]*/cmdline") if mark.encode() in _bytes(path)] == []


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_paths_that_other_users_cannot_read_or_that_need_a_mount_are_refused() -> None:
    with temporary_directory("re-bench-test-") as top:
        top.chmod(0o755)
        shown = top / "closed" / "shown"
        shown.mkdir(parents=True)
        spec = SandboxSpec(read_only={str(shown): shown})
        assert OtherUser().launch(["true"], spec).command
        shown.parent.chmod(0o700)
        with pytest.raises(SandboxUnavailableError, match=f"other users may not read {shown.parent};"):
            OtherUser().launch(["true"], spec)
    with pytest.raises(SandboxUnavailableError, match="'user' cannot show /usr as /elsewhere"):
        OtherUser().launch(["true"], SandboxSpec(read_only={"/elsewhere": Path("/usr")}))
