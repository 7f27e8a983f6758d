"""Prepare what a task needs before it can run.

As a program: ``python -m re_bench.task.prepare DIRECTORY --profile NAME [--instance N] [--into DIR [--drawing N] |
--worker DESCRIPTOR]``. With ``--worker`` it stays: one start of Python, and of torch, serves all workspaces of a task.

A task that needs something has a module ``prepare.py`` in its package. ``prepare(profile, say)`` makes what the profile
needs in the cache of prepared data, nothing twice, and tells ``say`` what it does, line by line.
``lay_out(profile, target)`` puts the prepared files that all workspaces have into the directory ``target``. A task
whose workspaces differ also has ``personalise(profile, target, drawing=None)``, which writes there afterwards what is
its own: drawn by the system's randomness, or by the number ``drawing``, the same each time, for what has to be the same
each time it is made. One that has instances has ``prepare_instance(profile, instance, say)``, which prepares for one,
or raises a UsageError.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import subprocess
import sys
import threading
import traceback
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from re_bench.data.instances import choose_instance
from re_bench.data.prepared import note_prepared
from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import cli_entry_point, print_progress, raise_if_stop_requested, run_program, terminate
from re_bench.task.discovery import open_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    from re_bench.task.discovery import Task

PERSONALISE = "personalise"
"""The function of ``prepare.py`` that writes what differs from one workspace to the next."""

_POLL_S = 0.2
_STDOUT, _STDERR = 1, 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, prepare, and lay out if asked to.

    The process ends with the status 2 if this cannot be done here, and 1 if it failed.

    Args:
        arguments: the command line; that of the process if None.
    """
    parser = argparse.ArgumentParser(prog="prepare.py", description="Make what a task needs, nothing twice.")
    parser.add_argument("directory", type=Path, help="the task's directory")
    parser.add_argument("--profile", required=True, help="the profile to prepare for")
    parser.add_argument("--instance", type=int, help="prepare for this one, and choose it")
    parser.add_argument("--drawing", type=int, help="with --into: draws what differs from workspace to workspace")
    after = parser.add_mutually_exclusive_group()
    after.add_argument("--into", metavar="DIR", type=Path, help="put a workspace's prepared files into this directory")
    after.add_argument("--worker", metavar="DESCRIPTOR", type=int, help="answer the requests of a PrepareWorker")
    options = parser.parse_args(arguments)
    with cli_entry_point("prepare.py"):
        task = open_task(options.directory)
        task.profile(options.profile)

        def say(line: str) -> None:
            print_progress(f"{task.name}: {line}")

        if options.into is not None and not options.into.is_dir():
            raise UsageError(f"{options.into}: not a directory; give one that exists")
        if options.worker is not None:
            _work(task, options.profile, Connection(options.worker))
            return
        with _prepare_module(task) as module:
            if options.instance is None:
                module.prepare(options.profile, say)
            else:
                if task.profile(options.profile).instance != "chosen":
                    where = f"{task.name} has no instances to choose from in profile {options.profile}"
                    raise UsageError(f"{where}; leave --instance out")
                module.prepare_instance(options.profile, options.instance, say)
                choose_instance(task.name, options.profile, options.instance)
            note_prepared(task.name, options.profile, task.manifest.version)
            if options.into is not None:
                module.lay_out(options.profile, options.into)
                if hasattr(module, PERSONALISE):
                    drawing = {} if options.drawing is None else {"drawing": options.drawing}
                    module.personalise(options.profile, options.into, **drawing)


@contextmanager
def _prepare_module(task: Task) -> Iterator[ModuleType]:
    """Yield the task's ``prepare.py``, imported; a package that is missing then or in the block is a usage error."""
    try:
        task.add_to_path()
        yield importlib.import_module(task.module("prepare"))
    except ModuleNotFoundError as error:
        remedy = f"pip install -c constraints.txt -e common -e tasks/{task.name}"
        raise UsageError(f"{task.name}: the package {error.name} is missing; run: {remedy}") from None


def run_preparation(
    task: Task, profile: str, into: Path | None = None, instance: int | None = None, drawing: int | None = None
) -> bool:
    """Run the task's ``prepare.py``, if it has one, in a process of its own; its output goes to our stderr.

    Args:
        task: the task.
        profile: ``cpu``, ``gpu`` or ``paper``.
        into: an existing directory that gets the prepared files of a workspace.
        instance: the instance to prepare for and to choose, if not the one that is chosen.
        drawing: what ``personalise`` draws from; None for the system's randomness.

    Returns:
        Whether it has one.

    Raises:
        UsageError: if it says that this cannot be prepared here.
        ReBenchError: if it fails.
    """
    if not task.preparer.is_file():
        return False
    where = ["--into", str(into)] if into is not None else []
    where += ["--instance", str(instance)] if instance is not None else []
    where += ["--drawing", str(drawing)] if drawing is not None else []
    program = ["-P", "-m", __name__, str(task.directory), "--profile", profile, *where]
    status, _nothing = run_program(program, capture=False)
    if status == UsageError.exit_status:
        raise UsageError(f"{task.name}: profile {profile} cannot be prepared here; the message of prepare.py is above")
    if status != 0:
        raise ReBenchError(
            f"{task.name}: prepare.py ended with exit status {status} in profile {profile}; its message is above"
        )
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

    def start(self) -> None:
        """Start it, unless it runs, and wait until it has prepared.

        Raises:
            UsageError: if the profile cannot be prepared here.
            ReBenchError: if that failed.
            StoppedError: if this process is ending.
        """
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self._connection, other = Pipe()
        with other:
            program = ["-P", "-m", __name__, str(self._task.directory), "--profile", self._profile]
            self._process = subprocess.Popen(
                [sys.executable, *program, "--worker", str(other.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=_STDERR,
                pass_fds=[other.fileno()],
                process_group=0,  # so that a terminal's interrupt reaches us alone, who end it
            )
        try:
            self.personalises = self._reply()
        except BaseException:
            self.close()
            raise

    def call(self, function: str, target: Path) -> None:
        """Call a function of ``prepare.py`` with the profile and the directory ``target``.

        Raises:
            UsageError: if the function raised it, or as :meth:`start`, if the process has to be started again.
            ReBenchError: if that failed.
            StoppedError: if this process is ending.
        """
        self.start()
        assert self._connection is not None
        with suppress(BrokenPipeError):  # then there is no reply, which raises
            self._connection.send((function, target.resolve()))
        self._reply()

    def close(self) -> None:
        """End it, with time to clean up."""
        if self._process is not None:
            with self._process:
                terminate(self._process)
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None

    def _reply(self) -> bool:
        """Return the next reply that is no progress; a worker that gave none is closed."""
        assert self._connection is not None
        assert self._process is not None
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


def _work(task: Task, profile: str, connection: Connection) -> None:
    """Prepare, then answer requests; this process ends by SIGTERM when the other end closes, whatever it is doing.

    A request is the name of a function of ``prepare.py`` and a directory. Replies are lines of progress, then a bool
    (of the first reply: whether there is a function ``personalise``) or a ReBenchError.
    """
    requests: SimpleQueue[tuple[str, Path]] = SimpleQueue()

    def read(main_thread: int) -> None:
        with suppress(EOFError, OSError):
            while True:
                requests.put(connection.recv())
        signal.pthread_kill(main_thread, signal.SIGTERM)

    def first(module: ModuleType) -> bool:
        module.prepare(profile, connection.send)
        note_prepared(task.name, profile, task.manifest.version)
        return hasattr(module, PERSONALISE)

    def later(module: ModuleType) -> bool:
        function, directory = requests.get()
        getattr(module, function)(profile, directory)
        return True

    threading.Thread(target=read, args=(threading.get_ident(),), daemon=True).start()
    reply = _outcome(task, first)
    connection.send(reply)
    while not isinstance(reply, ReBenchError):
        connection.send(_outcome(task, later))


def _outcome(task: Task, action: Callable[[ModuleType], bool]) -> bool | ReBenchError:
    """Return what an action with the task's ``prepare.py`` returns, or its error as one that can be pickled."""
    try:
        with _prepare_module(task) as module:
            return action(module)
    except ReBenchError as error:
        return (UsageError if isinstance(error, UsageError) else ReBenchError)(str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, the other end has to know
        traceback.print_exception(error)
        return ReBenchError(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
