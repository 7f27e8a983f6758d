"""Programs alongside a session's shell: concurrency, pipes, limits, cleanup."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from shell_session import SMALL, Session, past_its_limit, processes_with, session_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from re_bench_server.shell.program import ProgramOutput

pytestmark = pytest.mark.integration

_HOLD = "b = bytearray(200 << 20); b[::4096] = b'x' * len(b[::4096]); import time; time.sleep(30)"

_LIMITED, _CANCELLED, _FORKED, _CLOSED, _BARE = (f"90{n}{os.getpid()}" for n in range(1, 6))
_FORKS = f"for i in $(seq 100); do sleep {_FORKED} & done"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with session_in(tmp_path_factory.mktemp("programs")) as opened:
        yield opened


def execute_in(session: Session, *command: str, **options: Any) -> ProgramOutput:
    return session.runner.run(session.shell.execute(command, **options))


def sh(session: Session, script: str, **options: Any) -> ProgramOutput:
    return execute_in(session, "sh", "-c", script, **options)


_OWN = {"environment": {"PATH": "/workspace/tools:/usr/bin:/bin"}}
_ARGUMENTS = ["$HOME", "`id`", "a b", "", "*", "'\"\\", "\n", "é\udcff"]
_VARIABLES = 'pwd; echo "$GREETING:$HOME:${ONLY_IN_THE_SHELL-none}"'
_GREETING = {"directory": "sub", "environment": {"GREETING": "good day"}}
_PROGRAMS: dict[str, tuple[list[str], dict[str, Any], tuple[int, bytes, bytes]]] = {
    "outputs apart": (["sh", "-c", "cat; printf '\\377' >&2; exit 70"], {"stdin": b"\0\xff"}, (70, b"\0\xff", b"\xff")),
    "no stdin": (["cat"], {}, (0, b"", b"")),
    "arguments": (["printf", "%s|", *_ARGUMENTS], {}, (0, b"$HOME|`id`|a b||*|'\"\\|\n|\xc3\xa9\xff|", b"")),
    "workspace": (["sh", "-c", _VARIABLES], {}, (0, b"/workspace\n:/home/agent:none\n", b"")),
    "directory": (["sh", "-c", _VARIABLES], _GREETING, (0, b"/workspace/sub\ngood day:/home/agent:none\n", b"")),
    "absolute directory": (["pwd"], {"directory": "/usr/bin"}, (0, b"/usr/bin\n", b"")),
    "its own path": (["ls"], _OWN, (0, b"own\n", b"")),
    "relative path": (["./tools/ls"], {}, (0, b"own\n", b"")),
    "signal": (["sh", "-c", "kill -TERM $$"], {}, (143, b"", b"")),
    "large input": (["wc", "-c"], {"stdin": bytes(20 << 20)}, (0, b"20971520\n", b"")),
    "unread input": (["true"], {"stdin": bytes(5 << 20)}, (0, b"", b"")),
    "pipes by name": (["sh", "-c", "tee /dev/stderr </dev/stdin >/dev/stdout"], {"stdin": b"a"}, (0, b"a", b"a")),
}  # fmt: skip
"""Commands with options, exit status, stdout and stderr."""


@pytest.mark.parametrize(("command", "options", "expected"), _PROGRAMS.values(), ids=_PROGRAMS)
def test_programs(
    session: Session, command: list[str], options: dict[str, Any], expected: tuple[int, bytes, bytes]
) -> None:
    session.run("cd /workspace; mkdir -p sub tools; printf '#!/bin/sh\necho own' > tools/ls; chmod +x tools/ls")
    session.run("cd /tmp; export ONLY_IN_THE_SHELL=1")
    output = execute_in(session, *command, **options)
    session.run("cd /workspace")
    assert (output.status, output.stdout, output.stderr) == expected
    assert (output.error, output.truncated, output.timed_out) == ("", False, False)


@pytest.mark.parametrize(
    ("command", "options", "status", "error"),
    [
        (["no-such-program"], {}, 127, "no-such-program: No such file or directory"),
        (["/etc/passwd"], {}, 126, "/etc/passwd: Permission denied"),
        (["ls"], {"directory": "nowhere"}, 126, "/workspace/nowhere: No such file or directory"),
        (["echo", "x" * (200 << 10)], {}, 126, "echo: Argument list too long"),
        (["echo", "a\0b"], {}, 126, "echo: embedded null byte"),
        (["echo", "\ud800"], {}, 126, "can't encode"),
        (["echo"], {"environment": {"A=B": "1"}}, 126, "illegal environment variable name"),
        ([], {}, 126, "the command is empty"),
    ],
)
def test_start_errors_are_reported(
    session: Session, command: list[str], options: dict[str, Any], status: int, error: str
) -> None:
    output = execute_in(session, *command, **options)
    assert output.status == status
    assert error in output.error


def test_concurrent_programs_and_command(session: Session) -> None:
    async def all_of_them() -> list[Any]:
        programs = (
            session.shell.execute(["sh", "-c", f"until [ -e go ]; do sleep 0.05; done; echo {number}"])
            for number in range(12)
        )
        command = session.shell.run("until [ -e go ]; do sleep 0.05; done; echo shell", 60)
        waiting = asyncio.gather(command, *programs)
        await session.shell.execute(["touch", "go"])
        return await waiting

    shell, *programs = session.runner.run(all_of_them())
    assert shell.text == "shell\n"
    assert [int(output.stdout) for output in programs] == list(range(12))
    session.run("rm /workspace/go")


def test_long_output_is_truncated_in_the_middle(session: Session) -> None:
    output = sh(session, "yes 1234567 | head -c 4000000; echo end", output_bytes=1 << 16)
    assert output.truncated
    assert len(output.stdout) < (1 << 16) + 100
    assert output.stdout.startswith(b"1234567\n")
    assert b"bytes left out" in output.stdout
    assert output.stdout.endswith(b"end\n")


def test_background_processes_can_keep_writing(session: Session) -> None:
    loop = "i=0; while echo tick && [ $i -lt 26 ]; do i=$((i+1)); echo $i > /workspace/ticks; sleep 0.05; done"
    assert sh(session, f"echo begun; (setsid sh -c '{loop}') &").stdout.startswith(b"begun\n")
    for _ in range(100):
        if session.says("cat /workspace/ticks") == "26\n":
            return
        session.sleep(0.1)
    pytest.fail("the process in the background has stopped")


def test_timeout_kills_only_the_programs_processes(session: Session) -> None:
    session.run(f"sleep {_LIMITED}.0 &")
    script = (
        f"setsid sleep {_LIMITED}.2 & (setsid sh -c 'trap : TERM; sleep {_LIMITED}.3; sleep {_LIMITED}.4' &); "
        f"trap : TERM; echo begun; : > begun; sleep {_LIMITED}.5; sleep {_LIMITED}.6"
    )
    output = past_its_limit(
        lambda limit_s: sh(session, script, timeout_s=limit_s), lambda _output: (session.workspace / "begun").exists()
    )
    assert (output.status, output.stdout, output.timed_out) == (None, b"begun\n", True)
    assert output.seconds < 30
    assert processes_with(f"sleep {_LIMITED}.") == [f"sleep {_LIMITED}.0"]
    session.run("kill %1; rm begun")


def test_cancelled_program_is_killed(session: Session) -> None:
    async def cancelled() -> None:
        script = f"setsid sleep {_CANCELLED}.1 & sleep {_CANCELLED}.2"
        running = asyncio.ensure_future(session.shell.execute(["sh", "-c", script]))
        while len(processes_with(f"sleep {_CANCELLED}.")) < 2:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.05)
        running.cancel()
        await asyncio.wait([running])
        deadline = time.monotonic() + 60
        while processes_with(f"sleep {_CANCELLED}.") and time.monotonic() < deadline:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)

    session.runner.run(cancelled())
    assert processes_with(f"sleep {_CANCELLED}.") == []
    assert sh(session, "echo on").stdout == b"on\n"


def test_command_timeout_does_not_end_programs(session: Session) -> None:
    async def both() -> tuple[Any, ProgramOutput]:
        command = asyncio.ensure_future(session.shell.run("sleep 60", 0.3))
        await asyncio.sleep(0.2)
        output = await session.shell.execute(["sh", "-c", "(setsid sleep 1.2) & sleep 1.2; wait; echo whole"])
        return await command, output

    command, output = session.runner.run(both())
    assert command.timed_out
    assert output.stdout == b"whole\n"


def test_memory_limit_covers_all_programs(tmp_path: Path) -> None:
    async def hold(session: Session) -> list[ProgramOutput]:
        return await asyncio.gather(*(session.shell.execute(["python3", "-c", _HOLD]) for _ in range(4)))

    with session_in(tmp_path) as session:
        for output in session.runner.run(hold(session)):
            assert output.status is None
            assert output.error == "it used more than 512 MiB of memory"
        assert sh(session, "echo on").stdout == b"on\n"


def test_process_and_disk_limits(tmp_path: Path) -> None:
    with session_in(tmp_path) as session:
        assert b"fork" in sh(session, _FORKS).stderr
        session.run("kill -9 -1")
        past_its_limit(
            lambda limit_s: execute_in(session, "bash", "-c", f"{_FORKS}; wait", timeout_s=2 * limit_s),
            lambda output: b"fork" in output.stderr,
        )
        assert processes_with(f"sleep {_FORKED}") == []
        output = sh(session, "for i in 1 2 3 4; do head -c 15000000 /dev/zero > $i; done; sleep 30")
        assert (output.status, "it wrote more than 32 MiB" in output.error) == (None, True)
        assert b"Permission denied" in sh(session, "echo more > 5").stderr
        assert sh(session, "rm [1-4]").status == 0
        assert sh(session, "echo more > 5").status == 0


def test_killing_the_sandbox_ends_programs(session: Session) -> None:
    async def ended() -> tuple[Any, ProgramOutput]:
        waiting = asyncio.ensure_future(session.shell.execute(["sleep", "60"]))
        await asyncio.sleep(0.2)
        return await session.shell.run("kill -9 -1", 10), await waiting

    command, output = session.runner.run(ended())
    assert command.status is None
    assert (output.status, output.error) == (None, "all processes of the sandbox were killed")
    assert sh(session, "echo on").stdout == b"on\n"


def test_closed_shell_refuses_programs(tmp_path: Path) -> None:
    async def closed(session: Session) -> ProgramOutput:
        waiting = asyncio.ensure_future(session.shell.execute(["sleep", _CLOSED]))
        while not processes_with(f"sleep {_CLOSED}"):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.05)
        await session.shell.close()
        return await waiting

    with session_in(tmp_path) as session:
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        assert session.runner.run(closed(session)).error == "the session has ended"
        assert execute_in(session, "true").error == "the session has ended"
        assert len(list(Path("/proc/self/fd").iterdir())) < descriptors
    assert processes_with(f"sleep {_CLOSED}") == []


def test_without_a_sandbox(tmp_path: Path) -> None:
    with session_in(tmp_path, backend="none", limits=replace(SMALL, processes=4096)) as session:
        assert sh(session, "pwd; cat", stdin=b"x").stdout == f"{session.workspace}\nx".encode()
        assert sh(session, f"(setsid sleep {_BARE} &); sleep {_BARE}", timeout_s=0.5).timed_out
        assert processes_with(f"sleep {_BARE}") == []


def test_pipes_of_background_processes_are_limited(tmp_path: Path) -> None:
    async def leave(session: Session) -> list[ProgramOutput]:
        return await asyncio.gather(*(session.shell.execute(["sh", "-c", "sleep 60 &"]) for _ in range(50)))

    with session_in(tmp_path, limits=replace(SMALL, processes=400)) as session:
        for _ in range(3):
            assert {output.status for output in session.runner.run(leave(session))} == {0}
