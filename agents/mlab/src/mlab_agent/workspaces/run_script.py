"""Run a command here: without secrets, with a time limit, its output in files, and no process of it left behind."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from mlab_agent.truncate import truncated_file
from mlab_agent.workspaces.files import AGENT_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mlab_agent.workspaces.safe_fs import SafeDirectory

OUTPUT_DIRECTORY = f"{AGENT_DIRECTORY}/outputs"
KEPT_OUTPUTS = 20
_SECRET = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)S?(?:_|$)|APIKEY", re.IGNORECASE
)
_EXECUTION_VARIABLE = "MLAB_AGENT_EXECUTION"
_RUN_VARIABLE = "MLAB_AGENT_RUN"
_GRACE_S = 2.0
_POLL_S = 0.2
_PR_SET_DUMPABLE = 4


@dataclass(frozen=True)
class CommandResult:
    """How a command ended."""

    status: int | None
    """Exit status, negative for a signal; None if it was stopped."""
    timed_out: bool
    seconds: float
    output_too_long: bool
    """Whether it was stopped because of the length of its output."""


def child_environment(environment: Mapping[str, str], secrets: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables that a script gets.

    Args:
        environment: ours.
        secrets: values that no variable may hold, whatever its name is.
    """
    values = [secret for secret in secrets if secret]
    return {
        name: value
        for name, value in environment.items()
        if not _SECRET.search(name) and not any(secret in value for secret in values)
    }


def hide_this_process() -> None:
    """Keep other processes of this user from reading our memory and first environment, through /proc or by tracing.

    This has no effect on root, and works on Linux only.
    """
    import ctypes  # noqa: PLC0415 - rarely needed

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def run_command(
    command: Sequence[str],
    directory: str,
    environment: Mapping[str, str],
    outputs: tuple[BinaryIO, BinaryIO],
    *,
    timeout_s: float,
    output_limit: int,
    poll: Callable[[], None] = lambda: None,
) -> CommandResult:
    """Run a command until it ends or its time is up; all processes that it has started end with it.

    Processes are found by their group, and those that left the group by an environment variable that they all inherit.

    Args:
        command: the program and its arguments.
        directory: where it runs.
        environment: all of its variables.
        outputs: the files for stdout and stderr.
        timeout_s: after which it is stopped.
        output_limit: bytes of both outputs at which it is stopped.
        poll: called every now and then while it runs.

    Raises:
        OSError: if it cannot be started.
    """
    mark = uuid.uuid4().hex
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=directory,
        env={**environment, _EXECUTION_VARIABLE: mark},
        stdin=subprocess.DEVNULL,
        stdout=outputs[0],
        stderr=outputs[1],
        start_new_session=True,
    )

    def is_too_long() -> bool:
        poll()
        return _size(outputs) > output_limit

    try:
        timed_out, too_long = _wait(process, start + timeout_s, is_too_long)
        seconds = time.monotonic() - start
        if timed_out or too_long:
            _signal_group(process.pid, signal.SIGTERM)
            _wait(process, time.monotonic() + _GRACE_S, lambda: False)
    finally:
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()
        for _round in range(20):  # a process may have started another one meanwhile
            if not _kill_marked(_EXECUTION_VARIABLE, mark):
                break
            time.sleep(0.01)
    return CommandResult(None if timed_out or too_long else process.returncode, timed_out, seconds, too_long)


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


class ScriptOutputs:
    """The directory with the whole output of the last scripts, which is made when it is needed.

    Scripts can put links where these files are to be, so no link is followed.
    """

    def __init__(self, workspace: SafeDirectory) -> None:
        self._workspace = workspace
        self._number = 0

    @contextlib.contextmanager
    def open(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """Open files for stdout and stderr of the next script.

        Raises:
            OSError: if the directory is no directory of the workspace.
        """
        with self._workspace.parent(f"{OUTPUT_DIRECTORY}/.", make=True) as (directory, _last):
            with os.scandir(directory) as entries:
                files = [(int(stem), entry.name) for entry in entries if (stem := entry.name.split(".")[0]).isdecimal()]
            numbers = sorted({number for number, _name in files})
            self._number = max(numbers, default=0) + 1
            for number, name in files:
                if number in numbers[: 1 - KEPT_OUTPUTS]:
                    _unlink(name, directory)
            with self._new("stdout", directory) as stdout, self._new("stderr", directory) as stderr:
                yield stdout, stderr

    def collect(self, streams: tuple[BinaryIO, BinaryIO], limit: int) -> tuple[str, str, str | None]:
        """Join both outputs in one file; return stdout, stderr, and the path of that file if one was truncated.

        They are read from the open files: a script may have removed the names.

        Args:
            streams: as :meth:`open` yielded them.
            limit: bytes of each that are returned.

        Raises:
            OSError: if the directory is no directory of the workspace any more.
        """
        texts, longest = [], 0
        with (
            self._workspace.parent(f"{OUTPUT_DIRECTORY}/.", make=True) as (directory, _last),
            self._new("txt", directory) as joined,
        ):
            for name, stream in zip(("stdout", "stderr"), streams, strict=True):
                stream.seek(0)
                joined.write(f"=== {name} ===\n".encode())
                shutil.copyfileobj(stream, joined)
                joined.write(b"\n")
                file = stream.fileno()
                size = os.fstat(file).st_size
                texts.append(truncated_file(size, limit, lambda at, count, file=file: os.pread(file, count, at)))  # type: ignore[misc]
                longest = max(longest, size)
                _unlink(f"{self._number}.{name}", directory)
        return texts[0], texts[1], f"{OUTPUT_DIRECTORY}/{self._number}.txt" if longest > limit else None

    def _new(self, suffix: str, directory: int) -> BinaryIO:
        name = f"{self._number}.{suffix}"
        _unlink(name, directory)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        return open(os.open(name, flags, 0o644, dir_fd=directory), "a+b")  # noqa: PTH123 - the caller closes it


def _unlink(name: str, directory: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
