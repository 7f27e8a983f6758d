"""A running ``prepare.py``: one start of Python, and of torch, for all the workspaces of a task.

The worker (:func:`work`) prepares, then answers requests until its stdin ends. A request is a line of JSON: the name of
a function of ``prepare.py``, and a directory. Replies are lines of JSON on what was its stdout: ``say`` with a line of
progress, any number of them, then ``done``, or ``error`` and an exit status. :class:`PrepareWorker` is the other end.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from re_bench.data.prepared import note_prepared
from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import raise_if_stop_requested, terminate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from re_bench.task.discovery import Task

PERSONALISE = "personalise"
"""The function of ``prepare.py`` that writes what differs from one workspace to the next."""

_POLL_MS = 200
_READ_BYTES = 1 << 16
_STDOUT, _STDERR = 1, 2


@contextmanager
def prepare_module(task: Task) -> Iterator[ModuleType]:
    """Yield the task's ``prepare.py``, imported; a package that is missing then or in the block is a usage error."""
    try:
        task.add_to_path()
        yield importlib.import_module(task.module("prepare"))
    except ModuleNotFoundError as error:
        remedy = f"pip install -c constraints.txt -e common -e tasks/{task.name}"
        raise UsageError(f"{task.name}: the package {error.name} is missing; run: {remedy}") from None


def work(task: Task, profile: str) -> None:
    """Prepare, then answer requests. When stdin ends, the process ends by SIGTERM, whatever it is doing."""
    replies = os.fdopen(os.dup(_STDOUT), "w", encoding="utf-8")
    os.dup2(_STDERR, _STDOUT)  # what libraries print is no reply

    def reply(**fields: object) -> None:
        print(json.dumps(fields), file=replies, flush=True)

    requests: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_read_requests, args=(requests, threading.get_ident()), daemon=True).start()
    try:
        with prepare_module(task) as module:
            module.prepare(profile, lambda line: reply(say=line))
            note_prepared(task.name, profile, task.manifest.version)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other end is told
        reply(**_describe(error))
        return
    reply(done=True, personalises=hasattr(module, PERSONALISE))
    while True:
        function, directory = json.loads(requests.get())
        try:
            with prepare_module(task) as module:
                getattr(module, function)(profile, Path(directory))
        except Exception as error:  # noqa: BLE001 - as above
            reply(**_describe(error))
        else:
            reply(done=True)


def _read_requests(requests: SimpleQueue[str], main_thread: int) -> None:
    for line in sys.stdin:
        requests.put(line)
    signal.pthread_kill(main_thread, signal.SIGTERM)


def _describe(error: Exception) -> dict[str, object]:
    if isinstance(error, ReBenchError):
        return {"error": str(error), "status": error.exit_status}
    traceback.print_exception(error)
    return {"error": f"{type(error).__name__}: {error}", "status": ReBenchError.exit_status}


class PrepareWorker:
    """A task's ``prepare.py`` in a process of its own, which ends with ours. One thread at a time may use it."""

    def __init__(self, task: Task, profile: str, say: Callable[[str], None]) -> None:
        """Describe it; nothing is started yet. ``say`` gets its lines of progress."""
        self._task, self._profile, self._say = task, profile, say
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()
        self.personalises = False
        """Whether ``prepare.py`` has the function ``personalise``; known once it has been started."""

    def start(self) -> None:
        """Start it, unless it runs, and wait until it has prepared.

        Raises:
            UsageError: if the profile cannot be prepared here.
            ReBenchError: if that failed.
            StoppedError: if we are ending.
        """
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        program = ["-P", "-m", "re_bench.task.prepare", str(self._task.directory), "--profile", self._profile]
        self._process = subprocess.Popen(
            [sys.executable, *program, "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # so that a terminal's interrupt reaches us alone, who end it
        )
        try:
            self.personalises = bool(self._reply(self._process).get("personalises"))
        except BaseException:
            self.close()
            raise

    def call(self, function: str, target: Path) -> None:
        """Have it call a function of ``prepare.py`` with the profile and the directory ``target``.

        Raises:
            UsageError: if the function raised it, or as :meth:`start`, if it has to be started anew.
            ReBenchError: if that failed.
            StoppedError: if we are ending.
        """
        self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # then there is no reply, and that is said below
            self._process.stdin.write(json.dumps([function, str(target.resolve())]).encode() + b"\n")
            self._process.stdin.flush()
        self._reply(self._process)

    def close(self) -> None:
        """End it, with time to clean up."""
        process, self._process = self._process, None
        self._buffer.clear()
        if process is None:
            return
        with process, suppress(BrokenPipeError):  # which closes the pipes, and waits
            terminate(process)

    def _reply(self, process: subprocess.Popen[bytes]) -> dict[str, object]:
        """Return the next reply that is not progress; a worker that gave none is closed."""
        try:
            while "say" in (reply := json.loads(self._read_line(process))):
                self._say(str(reply["say"]))
        except BaseException:
            self.close()
            raise
        if "error" in reply:
            kind = UsageError if reply["status"] == UsageError.exit_status else ReBenchError
            raise kind(f"{self._task.name}, profile {self._profile}: {reply['error']}")
        return dict(reply)

    def _read_line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        poll = select.poll()  # select() takes no descriptors beyond 1023
        poll.register(process.stdout, select.POLLIN)
        while b"\n" not in self._buffer:
            raise_if_stop_requested()
            if poll.poll(_POLL_MS):
                data = os.read(process.stdout.fileno(), _READ_BYTES)
                if not data:
                    status = process.wait()
                    ending = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
                    raise ReBenchError(f"{self._task.name}: prepare.py {ending} in profile {self._profile}")
                self._buffer += data
        line, _newline, self._buffer = self._buffer.partition(b"\n")
        return bytes(line)
