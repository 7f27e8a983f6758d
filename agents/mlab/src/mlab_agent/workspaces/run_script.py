"""Run a command here: with a time limit, its output in files, and no process of it left behind."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from mlab_agent.workspaces.orphans import Orphans

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_RUN_VARIABLE = "MLAB_AGENT_RUN"
_GRACE_S = 2.0
_POLL_S = 0.2


@dataclass(frozen=True)
class CommandResult:
    """How a command ended."""

    status: int | None
    """Exit status, negative for a signal; None if it was stopped."""
    timed_out: bool
    seconds: float
    output_too_long: bool
    """Whether it was stopped because of the length of its output."""
    all_ended: bool
    """Whether none of its processes is left."""


def run_command(
    command: Sequence[str],
    directory: str,
    environment: Mapping[str, str],
    outputs: tuple[BinaryIO, BinaryIO],
    *,
    timeout_s: float,
    output_limit: int,
    owner: tuple[int, int] | None = None,
    poll: Callable[[], None] = lambda: None,
) -> CommandResult:
    """Run a command until it ends or its time is up; all processes that it has started end with it.

    Processes that left its group are adopted when their parent ends, and ended after it.

    Args:
        command: the program and its arguments.
        directory: where it runs.
        environment: all of its variables.
        outputs: the files for stdout and stderr.
        timeout_s: after which it is stopped.
        output_limit: bytes of both outputs at which it is stopped.
        owner: user and group that it runs as; None for ours.
        poll: called every now and then while it runs.

    Raises:
        OSError: if it cannot be started.
    """
    start = time.monotonic()

    def is_too_long() -> bool:
        poll()
        return _size(outputs) > output_limit

    with Orphans() as orphans:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=outputs[0],
            stderr=outputs[1],
            start_new_session=True,
            user=None if owner is None else owner[0],
            group=None if owner is None else owner[1],
            extra_groups=None if owner is None else (),
        )
        try:
            timed_out, too_long = _wait(process, start + timeout_s, is_too_long)
            seconds = time.monotonic() - start
            if timed_out or too_long:
                _signal_group(process.pid, signal.SIGTERM)
                _wait(process, time.monotonic() + _GRACE_S, lambda: False)
        finally:
            _signal_group(process.pid, signal.SIGKILL)
            process.wait()
            all_ended = orphans.end()
    return CommandResult(None if timed_out or too_long else process.returncode, timed_out, seconds, too_long, all_ended)


def mark_processes_of_run(run: str) -> None:
    """Have all processes that are started from now on carry the name of the run in their environment."""
    os.environ[_RUN_VARIABLE] = run


def kill_processes_of_run(run: str) -> int:
    """Kill the processes that a killed agent of the same run has left behind; return how many there were."""
    return _kill_marked(_RUN_VARIABLE, run)


def _wait(process: subprocess.Popen[bytes], deadline: float, stop: Callable[[], bool]) -> tuple[bool, bool]:
    """Wait for the end; return whether the time was up, and whether ``stop`` became true."""
    end = os.pidfd_open(process.pid)
    try:
        while (left := deadline - time.monotonic()) > 0:
            if select.select([end], [], [], min(left, _POLL_S))[0]:
                return False, False
            if stop():
                return False, True
        return not select.select([end], [], [], 0)[0], False
    finally:
        os.close(end)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _kill_marked(variable: str, value: str) -> int:
    """Kill all other processes whose first environment has the variable with this value; return their number."""
    setting = f"{variable}={value}".encode()
    marked = [pid for pid in _other_processes() if setting in _environment_of(pid)]
    for pid in marked:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return len(marked)


def _other_processes() -> list[int]:
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]  # noqa: PTH208
    return []


def _environment_of(pid: int) -> list[bytes]:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - many, often
        return file.read().split(b"\0")
    return []


def _size(outputs: tuple[BinaryIO, BinaryIO]) -> int:
    return sum(os.fstat(output.fileno()).st_size for output in outputs)
