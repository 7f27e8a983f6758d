"""Prepare what a task needs before it can run, in a process of its own.

A task that needs something has a module ``prepare.py`` in its package. ``prepare(profile, say)`` makes what the profile
needs in the cache of prepared data, unless it is there, and calls ``say`` with lines of progress.
``lay_out(profile, target)`` puts the prepared files that all workspaces have into the directory ``target``. A task
whose workspaces differ also has ``personalise(profile, target, drawing=None)``, which then writes what differs: from
the system's randomness, or from the seed ``drawing``. One that has instances has
``prepare_instance(profile, instance, say)``, which prepares for one, or raises a UsageError.
"""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
import threading
import traceback
from contextlib import closing, contextmanager, suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from re_bench.data.cache import note_prepared
from re_bench.data.instances import choose_instance
from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import cli_entry_point, print_progress, raise_if_stop_requested, terminate
from re_bench.task.discovery import open_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from re_bench.task.discovery import Task

PERSONALISE = "personalise"
"""The function of ``prepare.py`` that writes what differs from one workspace to the next."""

_Request = tuple[str, tuple[Path | int, ...], dict[str, int]]
_POLL_S = 0.2
_STDERR = 2


def run_preparation(
    task: Task, profile: str, into: Path | None = None, instance: int | None = None, drawing: int | None = None
) -> bool:
    """Run the task's ``prepare.py``, if it has one; its output and its lines of progress go to stderr.

    Args:
        task: the task.
        profile: ``cpu``, ``gpu`` or ``paper``.
        into: an existing directory that gets the prepared files of a workspace.
        instance: the instance to prepare for and to choose, if not the one that is chosen.
        drawing: the seed of ``personalise``; None for the system's randomness.

    Returns:
        Whether it has one.

    Raises:
        UsageError: if there is no such profile or instance, or this cannot be prepared here.
        ReBenchError: if it fails.
    """
    if instance is not None and task.profile(profile).instance != "chosen":
        where = f"{task.name} has no instances to choose from in profile {profile}"
        raise UsageError(f"{where}; leave --instance out")
    if not task.preparer.is_file():
        return False
    with closing(PrepareWorker(task, profile, lambda line: print_progress(f"{task.name}: {line}"))) as worker:
        worker.start(instance)
        if into is not None:
            worker.call("lay_out", into)
            if worker.personalises:
                worker.call(PERSONALISE, into, **({} if drawing is None else {"drawing": drawing}))
    return True


class PrepareWorker:
    """A task's ``prepare.py`` in a process of its own, which ends with ours. One thread at a time may use it."""

    def __init__(self, task: Task, profile: str, say: Callable[[str], None]) -> None:
        """Describe it; nothing is started yet. ``say`` gets its lines of progress."""
        self._task, self._profile, self._say = task, profile, say
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self.personalises = False
        """Whether ``prepare.py`` has the function ``personalise``; known once it has been started."""

    def start(self, instance: int | None = None) -> None:
        """Start it, unless it runs, and wait until it has prepared.

        Args:
            instance: the instance to prepare for and to choose, if not the one that is chosen.

        Raises:
            UsageError: if the profile cannot be prepared here.
            ReBenchError: if that failed.
            StoppedError: if this process is ending.
        """
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self._task.profile(self._profile)
        self._connection, other = Pipe()
        with other:
            program = ["-P", "-m", __name__, str(self._task.directory), self._profile, str(other.fileno())]
            self._process = subprocess.Popen(
                [sys.executable, *program],
                stdin=subprocess.DEVNULL,
                stdout=_STDERR,
                pass_fds=[other.fileno()],
                process_group=0,  # so that a terminal's interrupt reaches us alone, who end it
            )
        try:
            if instance is None:
                self.personalises = self._request("prepare")
            else:
                self.personalises = self._request("prepare_instance", instance)
                choose_instance(self._task.name, self._profile, instance)
        except BaseException:
            self.close()
            raise

    def call(self, function: str, target: Path, **options: int) -> None:
        """Call a function of ``prepare.py`` with the profile, the directory ``target`` and options.

        Raises:
            UsageError: if the function raised it, or as :meth:`start`, if the process has to be started again.
            ReBenchError: if that failed.
            StoppedError: if this process is ending.
        """
        self.start()
        self._request(function, target.resolve(), **options)

    def close(self) -> None:
        """End it, with time to clean up."""
        if self._process is not None:
            with self._process:
                terminate(self._process)
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None

    def _request(self, function: str, *arguments: Path | int, **options: int) -> bool:
        """Send a request and return the next reply that is no progress; a worker that gave none is closed."""
        assert self._connection is not None
        assert self._process is not None
        with suppress(BrokenPipeError):  # then there is no reply, which raises
            self._connection.send((function, arguments, options))
        reply: str | bool | ReBenchError = ""
        try:
            while isinstance(reply, str):
                raise_if_stop_requested()
                if self._connection.poll(_POLL_S):
                    reply = self._connection.recv()
                    if isinstance(reply, str):
                        self._say(reply)
        except (EOFError, ConnectionError):
            status = self._process.wait()
            self.close()
            ending = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
            raise ReBenchError(f"{self._task.name}: prepare.py {ending} in profile {self._profile}") from None
        except BaseException:
            self.close()
            raise
        if isinstance(reply, ReBenchError):
            raise type(reply)(f"{self._task.name}, profile {self._profile}: {reply}")
        return reply


def main() -> None:
    """Answer the requests of a :class:`PrepareWorker`: ``DIRECTORY PROFILE DESCRIPTOR`` of its connection.

    A request is the name of a function of ``prepare.py`` with its arguments behind the profile. Replies are lines of
    progress, then whether there is a function ``personalise``, or a ReBenchError. When the other end closes, this
    process ends by SIGTERM, whatever it is doing.
    """
    directory, profile, descriptor = sys.argv[1:]
    connection = Connection(int(descriptor))
    requests: SimpleQueue[_Request] = SimpleQueue()

    def read(main_thread: int) -> None:
        with suppress(EOFError, OSError):
            while True:
                requests.put(connection.recv())
        signal.pthread_kill(main_thread, signal.SIGTERM)

    with cli_entry_point("prepare.py"):
        task = open_task(Path(directory))
        threading.Thread(target=read, args=(threading.get_ident(),), daemon=True).start()
        while True:
            connection.send(_outcome(task, profile, requests.get(), connection.send))


def _outcome(task: Task, profile: str, request: _Request, say: Callable[[str], None]) -> bool | ReBenchError:
    """Call a function of the task's ``prepare.py``; return the reply, in which an error can be pickled."""
    function, arguments, options = request
    prepares = function.startswith("prepare")
    try:
        with _prepare_module(task) as module:
            getattr(module, function)(profile, *arguments, *([say] if prepares else []), **options)
            if prepares:
                note_prepared(task.name, profile, task.manifest.version)
            return hasattr(module, PERSONALISE)
    except ReBenchError as error:
        return (UsageError if isinstance(error, UsageError) else ReBenchError)(str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, the other end has to know
        traceback.print_exception(error)
        return ReBenchError(f"{type(error).__name__}: {error}")


@contextmanager
def _prepare_module(task: Task) -> Iterator[ModuleType]:
    """Yield the task's ``prepare.py``, imported; a package that is missing then or in the block is a usage error."""
    try:
        task.add_to_path()
        yield importlib.import_module(task.module("prepare"))
    except ModuleNotFoundError as error:
        remedy = f"pip install -c constraints.txt -e common -e tasks/{task.name}"
        raise UsageError(f"the package {error.name} is missing; run: {remedy}") from None


if __name__ == "__main__":
    main()
