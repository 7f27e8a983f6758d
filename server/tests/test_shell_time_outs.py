"""Timeouts end a command with its processes and keep the shell."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

import pytest
from shell_session import Session, past_its_limit, processes_with, session_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from re_bench_server.shell.protocol import Output

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with session_in(tmp_path_factory.mktemp("shell")) as opened:
        yield opened


LONG = f"271.8{os.getpid()}"  # seconds; no other worker's tests find these programs
EARLIER, CANCELLED = f"161.8{os.getpid()}", f"314.1{os.getpid()}"


def time_out(session: Session, command: str, first: str = "") -> Output:
    """Print ``before`` and run a command until its time limit."""
    begun = session.workspace / "begun"
    begun.unlink(missing_ok=True)
    return past_its_limit(
        lambda limit_s: session.run(f"{first} echo before; : > /workspace/begun; {command}", limit_s),
        lambda _output: begun.exists(),
    )


@pytest.mark.parametrize(
    "command",
    [
        "sleep 271.8",
        "sleep 271.8; echo never",
        "while true; do sleep 0.01; done",
        "while :; do :; done",
        "f() { while :; do :; done; }; f",
        "(sleep 271.8; echo never)",
        "(trap '' INT; sleep 271.8)",
        "sleep 271.8 | cat",
        "x=$(sleep 271.8)",
        "yes",
        "setsid --wait sleep 271.8",
        "sleep 271.8 & wait",
        "kill -STOP $$",
        "python3 -c 'import signal, time; signal.signal(2, signal.SIG_IGN); time.sleep(271.8)'",
    ],
)
def test_shell_survives_a_timeout(session: Session, command: str) -> None:
    session.run("kept=yes")
    output = time_out(session, command.replace("271.8", LONG))
    assert output.timed_out
    assert output.status is None
    assert output.text.startswith("before\n")
    assert output.seconds < 60
    assert session.says("echo $kept") == "yes\n"
    assert processes_with(LONG) == []


def test_uninterruptible_shell_is_replaced(session: Session) -> None:
    output = time_out(session, "cd /tmp; trap '' INT; while :; do :; done")
    assert output.timed_out
    assert output.text.startswith("before\n[the shell could not be interrupted and was killed")
    assert session.says("echo here") == "here\n"


def test_timeout_spares_earlier_background_processes(session: Session) -> None:
    # The earlier process starts orphans while the command runs.
    session.run(f"(while :; do (sleep {EARLIER} &); sleep 0.3; done) & setsid sleep {EARLIER} & sleep {EARLIER} &")
    long, find = f"sleep {LONG}", f"pgrep -f 'sleep {EARLIER}'"
    more = f"count=$({find} -c); until [ $({find} -c) -gt $((count + 2)) ]; do sleep 0.05; done; {find} > ~/earlier;"
    output = time_out(session, long, f"{long} & setsid {long} & ({long} &); nohup {long} & {more}")
    assert output.timed_out
    assert processes_with(LONG) == []
    assert session.run("kill -0 $(cat ~/earlier) && echo all").text.endswith("all\n")
    assert len(processes_with(EARLIER)) > 4
    session.run("kill %1 %2 %3; pkill sleep")


def test_stopped_supervisor_is_killed(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("re_bench_server.shell.sandbox._GRACE_S", 0.5)
    output = time_out(session, "kill -STOP $PPID")
    assert output.timed_out
    assert "the sandbox did not answer" in output.text
    assert session.says("echo here") == "here\n"


def test_cancelled_call_ends_its_command(session: Session) -> None:
    async def cancelled() -> None:
        call = asyncio.ensure_future(session.shell.run(f"kept=too; sleep {CANCELLED}", 60))
        while not processes_with(f"sleep {CANCELLED}"):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    started = time.monotonic()
    session.runner.run(cancelled())
    assert session.says("echo $kept") == "too\n"
    assert time.monotonic() - started < 50
    assert processes_with(CANCELLED) == []


def test_cancelled_waiting_call_runs_nothing(session: Session) -> None:
    async def cancelled() -> None:
        first = asyncio.ensure_future(session.shell.run("until [ -e /workspace/go ]; do sleep 0.05; done", 60))
        second = asyncio.ensure_future(session.shell.run("touch ~/ran", 60))
        await asyncio.sleep(0.1)
        second.cancel()
        await session.shell.execute(["touch", "/workspace/go"])
        await first

    session.runner.run(cancelled())
    assert session.run("ls ~/ran").status != 0
