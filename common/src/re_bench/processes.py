"""Processes: how our own programs end, how one runs another, and which descend from which."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from re_bench.errors import ReBenchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_GRACE_S = 30.0
_LAST_GRACE_S = 10.0
_POLL_S = 0.2
_SHORT_POLL_S = 0.02
_STDOUT, _STDERR = 1, 2
_stop_requests: list[object] = []
_this_thread = threading.local()


class SignalExit(SystemExit):
    """What a signal raises in the main thread."""


class StoppedError(BaseException):
    """The process is ending, and with it what this thread does; like an interrupt, no ``except Exception`` has it."""


@contextmanager
def cli_entry_point(program: str) -> Iterator[None]:
    """Turn errors into one line on stderr and an exit status; exit cleanly on signals.

    The line begins with the name ``program``; the status is that of the :class:`ReBenchError`. On SIGTERM and on an
    interrupt the block is left by :class:`SystemExit` with the status 128 plus the signal's number, so that programs
    we run and temporary directories are cleaned up; further signals do not interrupt that. An interrupt that is ignored
    already, as in the background of a shell script, stays ignored. Where the reader of our output has ended, as
    ``head`` does, we end without a message, as if by SIGPIPE.
    """
    numbers = [signal.SIGTERM] + [signal.SIGINT] * (signal.getsignal(signal.SIGINT) is not signal.SIG_IGN)
    before = {number: signal.signal(number, _exit_on_signal) for number in numbers}
    try:
        yield
        print(end="", flush=True)
    except SignalExit:
        _end_children()
        raise
    except BrokenPipeError:
        if not _has_lost_reader():
            raise
        sys.exit(128 + signal.SIGPIPE)
    except ReBenchError as error:
        print_progress(f"{program}: {error}")
        sys.exit(error.exit_status)
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _exit_on_signal(number: int, _frame: object) -> None:
    """Raise :class:`SignalExit`, unless the process already cleans up because of one."""
    error = sys.exception()
    while error is not None:
        if isinstance(error, SignalExit):
            return
        error = error.__context__
    raise SignalExit(128 + number)


def _end_children() -> None:
    """End what is left of the programs that we have started.

    A signal can come after a program was started and before the code that ends it knows of it.
    """
    children = psutil.Process().children(recursive=True)
    end_processes([child.pid for child in children], (signal.SIGTERM, _LAST_GRACE_S), (signal.SIGKILL, _LAST_GRACE_S))


def _has_lost_reader() -> bool:
    """Tell whether stdout is a pipe that has no reader any more; if so, what is left to be written goes nowhere."""
    pipe = select.poll()
    pipe.register(_STDOUT, 0)
    if not any(event & select.POLLERR for _descriptor, event in pipe.poll(0)):
        return False
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STDOUT)
    os.close(nowhere)
    return True


@contextmanager
def temporary_directory(prefix: str) -> Iterator[Path]:
    """Make a temporary directory for the block; it is removed at the end, even if a signal comes meanwhile."""
    directory = tempfile.TemporaryDirectory(prefix=prefix)
    try:
        yield Path(directory.name)
    finally:
        try:
            directory.cleanup()
        except BaseException:  # raised by cli_entry_point on a signal, which comes only once
            shutil.rmtree(directory.name, ignore_errors=True)
            raise


@contextmanager
def request_stop() -> Iterator[None]:
    """Ask all threads to stop what they run, for as long as the block waits for them.

    Whatever waits for a program in a thread ends the program and raises :class:`StoppedError`. The request is one of
    the whole process, as are the signals that lead to it, so that nothing between a signal and a program that a
    thread waits for has to hand it on. Requests may overlap.
    """
    request = object()
    _stop_requests.append(request)
    yield
    _stop_requests.remove(request)  # not after an exception: then nobody has waited


@contextmanager
def stop_on(event: threading.Event | None) -> Iterator[None]:
    """Have this thread also stop once ``event`` is set, for as long as the block runs; None: only with the others."""
    before = getattr(_this_thread, "stop", None)
    _this_thread.stop = event
    try:
        yield
    finally:
        _this_thread.stop = before


def stop_requested() -> bool:
    """Tell whether threads are asked to stop, or this one is; see :func:`stop_on`."""
    event = getattr(_this_thread, "stop", None)
    return bool(_stop_requests) or (event is not None and event.is_set())


def raise_if_stop_requested() -> None:
    """Do nothing, or stop this thread.

    Raises:
        StoppedError: if threads are asked to stop, or this one is.
    """
    if stop_requested():
        raise StoppedError


def print_progress(line: str) -> None:
    """Print a line on stderr, at once: what a command that takes a while is doing.

    A part of it may be what anybody wrote, so what a terminal would obey stands as its code.
    """
    print("".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in line),
          file=sys.stderr, flush=True)  # fmt: skip


def run_program(
    program: Sequence[str],
    *,
    capture: bool,
    time_limit_s: float | None = None,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[int, bytes]:
    """Run a Python program to its end; it is stopped, with time to clean up, if this process or thread is stopped.

    Args:
        program: the arguments of the interpreter: the program's path and its command line.
        capture: whether to return its stdout; else that goes to our stderr, as its stderr always does.
        time_limit_s: wall-clock seconds that it may take.
        directory: its working directory, if not ours.
        environment: variables that it gets besides ours.

    Returns:
        Its exit status, and what it wrote to stdout if that was captured.

    Raises:
        subprocess.TimeoutExpired: if it was stopped at its time limit.
        StoppedError: if we are ending.
    """
    deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
    with subprocess.Popen(
        [sys.executable, *program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if capture else _STDERR,
        cwd=directory,
        env={**os.environ, **(environment or {})},
        process_group=0,  # so that a terminal's interrupt reaches us alone, who stop the program
    ) as process:
        try:
            while True:
                raise_if_stop_requested()
                left = _POLL_S if deadline is None else min(_POLL_S, max(0.0, deadline - time.monotonic()))
                try:
                    output, _none = process.communicate(timeout=left)
                except subprocess.TimeoutExpired:
                    if deadline is not None and time.monotonic() >= deadline:
                        raise
                else:
                    return process.returncode, output or b""
        except BaseException:
            terminate(process)
            raise


def terminate(process: subprocess.Popen[bytes]) -> None:
    """End a program that we have started, with time to clean up; one that was killed may not have ended yet."""
    process.terminate()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()


def tree(root: int) -> Iterator[int]:
    """Yield ``root`` and its descendants, parents first, as far as they can be seen.

    Sandboxes ask for this several times a second: psutil would read the files of all processes of the machine for it.
    """
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        with suppress(OSError):
            for thread in list(Path(f"/proc/{pid}/task").iterdir()):
                with suppress(OSError):
                    waiting += map(int, (thread / "children").read_bytes().split())


def all_processes() -> list[int]:
    """Return the ids of all processes that can be seen."""
    return [int(pid) for pid in psutil.pids()]


def command_line(pid: int) -> list[str]:
    """Return the words of a process's command line; nothing of one that has ended."""
    with suppress(psutil.Error, OSError):
        return [str(word) for word in psutil.Process(pid).cmdline()]
    return []


def began_with(pid: int, variable: str) -> str | None:
    """Return the value of an environment variable that a process began with; None if it had none, or hides it."""
    with suppress(psutil.Error, OSError):
        value: str | None = psutil.Process(pid).environ().get(variable)
        return value
    return None


def runs(pid: int) -> bool:
    """Tell whether a process is there that has not ended."""
    with suppress(psutil.Error, OSError):
        return psutil.Process(pid).status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    return False


def end_processes(pids: Iterable[int], *steps: tuple[signal.Signals, float]) -> None:
    """End processes that need not be ours: each step sends a signal to those that are left, and waits so many seconds.

    Processes that may not be signalled are left alone.
    """
    left = set(pids)
    for number, seconds in steps:
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while (left := {pid for pid in left if runs(pid)}) and time.monotonic() < deadline:
            time.sleep(_SHORT_POLL_S)
