"""Running a script here: without secrets, with a time limit, its output in files, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["Ended", "child_environment", "hide_this_process", "run"]

_SECRET = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)S?(?:_|$)|APIKEY", re.IGNORECASE
)
_MARK = "MLAB_AGENT_EXECUTION"
_GRACE_S = 2.0
_LOOK_S = 0.2
_PR_SET_DUMPABLE = 4


@dataclass(frozen=True)
class Ended:
    """How a script ended."""

    status: int | None
    timed_out: bool
    seconds: float
    too_long: bool
    """Whether it was stopped because of the length of its output."""


def child_environment(
    environment: Mapping[str, str], secrets: Iterable[str] = (), passed: Iterable[str] = ()
) -> dict[str, str]:
    """Return the variables that a script gets.

    Args:
        environment: ours.
        secrets: values that no variable may hold, whatever its name is.
        passed: names that stay although they look like those of secrets.
    """
    hidden, kept = [each for each in secrets if each], set(passed)
    return {
        name: value
        for name, value in environment.items()
        if (name in kept or not _SECRET.search(name)) and not any(each in value for each in hidden)
    }


def hide_this_process() -> None:
    """Have no other process of this user read our memory and our first environment, in /proc and by tracing.

    It is of no use against root, and only Linux has it.
    """
    import ctypes  # noqa: PLC0415 - rarely needed

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def run(
    command: Sequence[str],
    directory: str,
    environment: Mapping[str, str],
    outputs: tuple[BinaryIO, BinaryIO],
    *,
    timeout_s: float,
    most_output: int,
) -> Ended:
    """Run a command until it ends or its time is up; all processes that it has started end with it.

    Processes are found by their group, and those that left it by a variable that they all inherit.

    Raises:
        OSError: if it cannot be started.
    """
    mark = uuid.uuid4().hex
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=directory,
        env={**environment, _MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=outputs[0],
        stderr=outputs[1],
        start_new_session=True,
    )
    try:
        timed_out, too_long = _wait(process, began + timeout_s, lambda: _size(outputs) > most_output)
        seconds = time.monotonic() - began
        if timed_out or too_long:
            _signal(process.pid, signal.SIGTERM)
            _wait(process, time.monotonic() + _GRACE_S, lambda: False)
    finally:
        _end(process, mark)
    return Ended(None if timed_out or too_long else process.returncode, timed_out, seconds, too_long)


def _wait(process: subprocess.Popen[bytes], deadline: float, stop: Callable[[], bool]) -> tuple[bool, bool]:
    """Wait for the end; return whether the time was up, and whether it should be stopped."""
    end = os.pidfd_open(process.pid)
    try:
        while (left := deadline - time.monotonic()) > 0:
            if select.select([end], [], [], min(left, _LOOK_S))[0]:
                return False, False
            if stop():
                return False, True
        return not select.select([end], [], [], 0)[0], False
    finally:
        os.close(end)


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    _signal(process.pid, signal.SIGKILL)
    process.wait()
    wanted = f"{_MARK}={mark}".encode()
    for _round in range(20):  # one may have started another meanwhile
        if not (left := [pid for pid in _processes() if wanted in _variables(pid)]):
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]  # noqa: PTH208


def _variables(pid: int) -> list[bytes]:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - many, often
        return file.read().split(b"\0")
    return []


def _size(outputs: tuple[BinaryIO, BinaryIO]) -> int:
    return sum(os.fstat(each.fileno()).st_size for each in outputs)
