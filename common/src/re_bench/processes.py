"""Processes: how our own programs end and are run by others, and which descend from which."""

from __future__ import annotations

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

from re_bench.errors import ReBenchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "StoppedError",
    "check_stopping",
    "cli_entry_point",
    "run_program",
    "stopping",
    "stopping_threads",
    "temporary_directory",
    "tree",
]

_GRACE_S = 10.0
_POLL_S = 0.2
_STDERR = 2
_stopping = threading.Event()


class StoppedError(BaseException):
    """The process is ending, and with it what this thread does; like an interrupt, no ``except Exception`` has it."""


@contextmanager
def cli_entry_point(program: str) -> Iterator[None]:
    """Give the process the ends that all our programs have.

    A failure of ours is one line on stderr, after the name ``program``, and its exit status. On SIGTERM and on an
    interrupt the block is left, so that programs we run and temporary directories go, and the status is 128 and the
    signal's number. Further signals do not disturb this. An interrupt that is ignored, as in the background of a shell
    script, stays so.
    """
    numbers = [signal.SIGTERM] + [signal.SIGINT] * (signal.getsignal(signal.SIGINT) is not signal.SIG_IGN)

    def leave(number: int, _frame: object) -> None:
        for each in numbers:
            signal.signal(each, _not_again)
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    except ReBenchError as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _not_again(_number: int, _frame: object) -> None:
    """Do nothing. Programs that are started while we clear up do not inherit this, as they would ``SIG_IGN``."""


@contextmanager
def temporary_directory(prefix: str) -> Iterator[Path]:
    """Have a temporary directory within the block, which goes with it, also when a signal comes while it is removed."""
    place = tempfile.TemporaryDirectory(prefix=prefix)
    try:
        yield Path(place.name)
    finally:
        try:
            place.cleanup()
        except BaseException:  # a signal, as cli_entry_point has it, which does not come twice
            shutil.rmtree(place.name, ignore_errors=True)
            raise


@contextmanager
def stopping_threads() -> Iterator[None]:
    """Have all threads give up what they run, for as long as the block waits for them.

    Whatever waits for a program in a thread ends the program and raises :class:`StoppedError`.
    """
    _stopping.set()
    yield
    _stopping.clear()  # not after an exception: then nobody has waited


def stopping() -> bool:
    """Tell whether threads are asked to give up."""
    return _stopping.is_set()


def check_stopping() -> None:
    """Give up if threads are asked to.

    Raises:
        StoppedError: if they are.
    """
    if stopping():
        raise StoppedError


def run_program(
    program: Sequence[str], *, capture: bool, time_limit_s: float | None = None, directory: Path | None = None
) -> tuple[int, bytes]:
    """Run a Python program to its end; it is stopped, with time to clear up, if we are stopped.

    Args:
        program: the arguments of the interpreter: the program's path and its command line.
        capture: whether its stdout is wanted; else that goes to our stderr, as its stderr always does.
        time_limit_s: wall-clock seconds that it may take.
        directory: where it runs, if not here.

    Returns:
        Its exit status, and what it wrote to stdout if that is wanted.

    Raises:
        subprocess.TimeoutExpired: if it was stopped at its time limit.
        StoppedError: if we are ending.
    """
    stdout = subprocess.PIPE if capture else _STDERR
    words = [sys.executable, *program]
    # In a group of its own, so that a terminal's interrupt reaches us alone, and the program by our doing.
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=stdout, cwd=directory, process_group=0) as process:
        try:
            written = _output(process, time_limit_s)
        except BaseException:
            process.terminate()
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    return process.returncode, written


def _output(process: subprocess.Popen[bytes], time_limit_s: float | None) -> bytes:
    deadline = float("inf") if time_limit_s is None else time.monotonic() + time_limit_s
    while True:
        check_stopping()
        try:
            written, _none = process.communicate(timeout=min(_POLL_S, max(0.0, deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= deadline:
                raise
        else:
            return written or b""


def tree(root: int) -> Iterator[int]:
    """Yield ``root`` and its descendants, parents first, as far as they can be seen."""
    yield root
    try:
        threads = list(Path(f"/proc/{root}/task").iterdir())
    except OSError:
        return
    for thread in threads:
        with suppress(OSError):
            for child in (thread / "children").read_text(encoding="ascii").split():
                yield from tree(int(child))
