"""After a session nothing is left: no process, mount, socket or file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from shell_session import SMALL, processes_with, session_in, shell_in

from re_bench.errors import ReBenchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from re_bench_server.shell.protocol import Output
    from re_bench_server.shell.shell import Shell

pytestmark = pytest.mark.integration

LONG = f"314.{os.getpid()}"  # seconds; no other worker's tests find these programs
MANY = f"sleep {LONG} & setsid sleep {LONG} & (sleep {LONG} &) ; nohup sleep {LONG} > /dev/null & "

SERVER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from shell_session import shell_in

async def main(place):
    shell = await shell_in(place)
    await shell.run({many!r}, 10)
    print("running", flush=True)
    await shell.run("sleep {long}", 100)

asyncio.run(main(Path(sys.argv[1])))
"""


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def mounts() -> str:
    return Path("/proc/self/mounts").read_text()


def soon(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_closing_leaves_nothing(tmp_path: Path) -> None:
    with session_in(tmp_path) as first:  # opens what all sessions share
        first.run("true")
    before, seen = descriptors(), mounts()
    (tmp_path / "more").mkdir()
    with session_in(tmp_path / "more") as session:
        session.run(MANY)
        assert soon(lambda: len(processes_with(LONG)) == 4)
        session.runner.run(session.shell.close())
        assert processes_with(LONG) == []
        assert processes_with(str(tmp_path)) == []
        assert list(session.scratch.iterdir()) == []
    assert (descriptors(), mounts()) == (before, seen)


def test_closing_ends_a_running_command(tmp_path: Path) -> None:
    async def closed_meanwhile(shell: Shell) -> tuple[Output, Output]:
        running = asyncio.ensure_future(shell.run(MANY + f"echo begun; sleep {LONG}", 60))
        waiting = asyncio.ensure_future(shell.run("echo never", 60))
        await asyncio.sleep(0.3)
        await shell.close()
        assert processes_with(LONG) == []
        return await running, await waiting

    with session_in(tmp_path) as session:
        started = time.monotonic()
        ended, refused = session.runner.run(closed_meanwhile(session.shell))
        assert time.monotonic() - started < 50
        assert ended.status is None
        assert ended.text == "[the session has ended]\n"
        assert "nothing was run" in refused.text
        assert "the session has ended" in session.run("echo never").text


def test_closing_can_be_repeated_and_cancelled(tmp_path: Path) -> None:
    async def closed(shell: Shell) -> None:
        closing = asyncio.ensure_future(shell.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await asyncio.gather(shell.close(), shell.close())
        await shell.close()

    with session_in(tmp_path) as session:
        session.run(MANY)
        session.runner.run(closed(session.shell))
        assert processes_with(LONG) == []


@pytest.mark.parametrize("after_s", [0.0, 0.0005, 0.001, 0.003, 0.02, 0.05, 0.1])
def test_cancelled_opening_leaves_nothing(tmp_path: Path, after_s: float) -> None:
    async def cancelled() -> None:
        opening = asyncio.ensure_future(shell_in(tmp_path))
        await asyncio.sleep(after_s)
        opening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await opening).close()

    (tmp_path / "workspace").mkdir()
    (tmp_path / "scratch").mkdir()
    asyncio.run(cancelled())
    assert list((tmp_path / "scratch").iterdir()) == []
    assert soon(lambda: processes_with(str(tmp_path)) == [])


def test_failed_opening_reports_why_and_leaves_nothing(tmp_path: Path) -> None:
    limits = replace(SMALL, open_files=8)
    with (
        pytest.raises(ReBenchError, match=r"(?s)sandbox did not start: .*Too many open files"),
        session_in(tmp_path, limits=limits),
    ):
        pass
    assert list((tmp_path / "scratch").iterdir()) == []
    assert processes_with(str(tmp_path)) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_server_death_ends_its_sandboxes(tmp_path: Path, number: int) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "scratch").mkdir()
    program = SERVER.format(tests=str(Path(__file__).parent), many=MANY, long=LONG)
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "running\n"
            assert soon(lambda: len(processes_with(LONG)) == 5)
            server.send_signal(number)
            assert server.wait(60) == -number
        finally:
            server.kill()
    assert soon(lambda: processes_with(LONG) == [])
    assert soon(lambda: processes_with(str(tmp_path)) == [])


def test_new_shells_do_not_leak_descriptors(tmp_path: Path) -> None:
    with session_in(tmp_path) as session:
        session.run("kill -9 $PPID")
        session.run("true")
        before = descriptors()
        inside = session.says("ls /proc/$PPID/fd | wc -l")
        for _ in range(5):
            session.run("kill -9 $PPID")
        session.run("true")
        for _ in range(5):
            session.run("exit")
        assert session.says("ls /proc/$PPID/fd | wc -l") == inside
        assert soon(lambda: descriptors() <= before)
