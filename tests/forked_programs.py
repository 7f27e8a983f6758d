"""Programs of this repository in tests, started in a hundredth of the time: forks of a process that has imported much.

A template imports modules, or runs files that import and use what is dear, for all programs that a process of pytest
starts::

    COMMANDS = Template("re_bench.cli.main")
    ...
    with COMMANDS.popen([sys.executable, "-m", "re_bench.cli", "list"], stdout=PIPE, text=True) as process:
        listed, _err = process.communicate()
    done = COMMANDS.run([sys.executable, "-m", "re_bench.cli", "list"], capture_output=True, text=True)

``popen`` takes what ``subprocess.Popen`` takes, of which ``cwd``, ``env``, the three streams and ``start_new_session``
have an effect, and returns a ``Popen``. Its program is a process with its own id, arguments, environment, directory
and streams, which ends as it would, and which can be interrupted and killed. What differs from a start, and is the
reason to start one program of each kind really (``popen(..., fork=False)``):

- ``/proc`` shows the template's command line and environment, which has no variable with KEY or TOKEN in its name;
- the parent is the template, which has already imported its modules and read the variables that matter to them, of
  which OMP_NUM_THREADS is 1;
- a program that replaces itself by itself (``os.execve``), as the agent does, goes on in its process instead.

A program that is to find another ``sitecustomize`` by its ``PYTHONPATH`` than the template's is really started.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import inspect
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NUMBER_BYTES = 8


class Template:
    """A process of this process that has imported some modules, made when it is first used."""

    def __init__(self, *modules: str | Path, python_path: str = "") -> None:
        self._modules, self._python_path = [*map(str, modules)], python_path
        self._lock = threading.Lock()
        self._requests: socket.socket | None = None

    def popen(self, command: Sequence[str], *, fork: bool = True, **options: Any) -> subprocess.Popen[Any]:
        """Start ``[sys.executable, ...]``, with ``-P`` or not, and ``-m MODULE``, ``-c PROGRAM`` or ``FILE``."""
        variables = os.environ if options.get("env") is None else options["env"]
        if not fork or _customized(variables.get("PYTHONPATH", "")) != _customized(self._python_path):
            return subprocess.Popen(command, **options)
        return _Forked(self, command, **options)

    def run(
        self, command: Sequence[str], *, timeout: float | None = None, capture_output: bool = False, **options: Any
    ) -> subprocess.CompletedProcess[Any]:
        """Do what ``subprocess.run`` does with ``check=False``."""
        if capture_output:
            options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with self.popen(command, **options) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def fork(self, request: Mapping[str, Any], streams: Sequence[int]) -> tuple[int, int]:
        """Return the id of a new process, and a pipe that will give its status."""
        read_end, write_end = os.pipe()
        written = os.memfd_create("request")
        try:
            os.write(written, json.dumps(request).encode())
            os.lseek(written, 0, os.SEEK_SET)
            socket.send_fds(self._started(), [b"!"], [*streams, write_end, written])
        finally:
            os.close(write_end)
            os.close(written)
        return _number(read_end), read_end

    def _started(self) -> socket.socket:
        with self._lock:
            if self._requests is None:
                self._requests, served = socket.socketpair()
                command = [sys.executable, "-P", __file__, str(served.fileno()), *self._modules]
                kept = {name: value for name, value in os.environ.items() if "KEY" not in name and "TOKEN" not in name}
                variables = kept | {"PYTHONPATH": self._python_path, "OMP_NUM_THREADS": "1"}
                process = subprocess.Popen(command, env=variables, pass_fds=[served.fileno()], stdin=subprocess.DEVNULL)
                served.close()
                atexit.register(self._end, self._requests, process)
            return self._requests

    @staticmethod
    def _end(requests: socket.socket, process: subprocess.Popen[bytes]) -> None:
        requests.close()
        process.wait()


class _Forked(subprocess.Popen[Any]):
    """A process whose parent is the template, which tells its status."""

    def __init__(self, template: Template, command: Sequence[str], **options: Any) -> None:
        self._template = template
        super().__init__(command, **options)

    def _execute_child(self, *arguments: Any) -> None:
        bound = inspect.signature(subprocess.Popen._execute_child).bind(self, *arguments)  # type: ignore[attr-defined]
        given = bound.arguments
        assert list(given["args"][:1]) == [sys.executable], "a template forks programs of this Python only"
        request = {
            "arguments": [str(argument) for argument in given["args"][1:]],
            "cwd": os.fspath(given["cwd"] or Path.cwd()),
            "env": dict(os.environ if given["env"] is None else given["env"]),
            "start_new_session": given["start_new_session"],
        }
        inherited = zip((given["p2cread"], given["c2pwrite"], given["errwrite"]), range(3), strict=True)
        streams = [stream if made == -1 else made for made, stream in inherited]
        self.pid, self._status = self._template.fork(request, streams)
        self._child_created = True
        ends = (given[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite"))
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        ready = select.poll()
        ready.register(self._status, select.POLLIN)
        if wait_flags & os.WNOHANG and not ready.poll(0):
            return 0, 0
        status = _number(self._status)
        os.close(self._status)
        return self.pid, status

    def _internal_poll(self, **_unused: Any) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):  # type: ignore[attr-defined]
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode


def _customized(python_path: str) -> list[str]:
    """Return the entries from which Python would import more than a program asks for."""
    return [entry for entry in python_path.split(os.pathsep) if entry and (Path(entry) / "sitecustomize.py").exists()]


def _number(pipe: int) -> int:
    """Read a number that the template wrote."""
    written = os.read(pipe, _NUMBER_BYTES)
    assert len(written) == _NUMBER_BYTES, "the template has ended"
    return int.from_bytes(written, "big", signed=True)


def _tell(pipe: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
        os.write(pipe, number.to_bytes(_NUMBER_BYTES, "big", signed=True))


def _next_child(requests: socket.socket) -> dict[str, Any]:
    """Fork a process for each request, and tell its status; return in the new process, with what it is to be."""
    children: dict[int, tuple[int, int]] = {}
    ready = select.poll()
    ready.register(requests, select.POLLIN)
    while True:
        for descriptor, _events in ready.poll():
            if descriptor in children:
                ready.unregister(descriptor)
                pid, status = children.pop(descriptor)
                _tell(status, os.waitpid(pid, 0)[1])
                os.close(status)
                os.close(descriptor)
                continue
            message, received, _flags, _address = socket.recv_fds(requests, 1, 5)
            if not message:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                requests.close()
                for pair in children.items():
                    os.close(pair[0])
                    os.close(pair[1][1])
                return _prepared(received)
            *unused, status, written = received
            for unused_descriptor in (*unused, written):
                os.close(unused_descriptor)
            child = os.pidfd_open(pid)
            children[child] = pid, status
            ready.register(child, select.POLLIN)
            _tell(status, pid)


def _prepared(received: list[int]) -> dict[str, Any]:
    """Give a new process its streams, session and directory; return its request."""
    *streams, status, written = received
    os.close(status)
    with open(written, "rb") as file:  # noqa: PTH123 - it has no path
        request: dict[str, Any] = json.load(file)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    if request["start_new_session"]:
        os.setsid()
    os.chdir(request["cwd"])
    return request


class _RestartError(BaseException):
    """The program is to begin again, with other arguments and another environment."""


def _execve(path: str, command: list[str], variables: Mapping[str, str]) -> NoReturn:
    if path == sys.executable:
        raise _RestartError(command[1:], variables)
    _real_execve(path, command, variables)


_real_execve = os.execve


def _become(arguments: Sequence[str], variables: Mapping[str, str], own_path: Sequence[str]) -> None:
    """Do what Python does with such arguments and such an environment."""
    os.environ.clear()
    os.environ.update(variables)
    safe = arguments[0] == "-P"
    what, *sys.argv[1:] = arguments[1:] if safe else arguments
    first = {"-m": str(Path.cwd()), "-c": ""}
    named = sys.argv.pop(1) if what in first else what
    entries = [entry for entry in variables.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = [*([] if safe else [first.get(what, str(Path(what).resolve().parent))]), *entries, *own_path]
    if what == "-m":
        sys.modules.pop(named, None)
        runpy.run_module(named, run_name="__main__", alter_sys=True)
        return
    sys.argv[0] = what
    if what == "-c":
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(named, "<string>", "exec"), main.__dict__)  # noqa: S102 - as Python does
    else:
        runpy.run_path(named, run_name="__main__")


def _main() -> None:
    """Import the modules that are named, and fork."""
    statuses: list[int] = []
    atexit.register(_leave, statuses)  # the first to be registered is called last
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a person at a terminal, who means pytest
    requests = socket.socket(fileno=int(sys.argv[1]))
    requests.set_inheritable(False)
    given = os.environ.pop("PYTHONPATH", "").split(os.pathsep)
    before = set(os.environ)
    for module in sys.argv[2:]:
        runpy.run_path(module) if module.endswith(".py") else importlib.import_module(module)
    own_path = [entry for entry in sys.path if entry not in given]
    added = {name: value for name, value in os.environ.items() if name not in before}  # by what was imported
    assert threading.active_count() == 1, "a fork would lack the threads of what was imported"
    gc.collect()
    gc.freeze()  # so that children do not copy it when they collect
    request = _next_child(requests)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.execve = _execve  # type: ignore[assignment] # of what Python itself would take
    arguments, variables = request["arguments"], {**added, **request["env"]}
    while True:
        try:
            return _become(arguments, variables, own_path)
        except _RestartError as restart:
            arguments, variables = restart.args
        except SystemExit as end:
            if end.code is None or isinstance(end.code, int):
                statuses.append(end.code or 0)
            raise


def _leave(statuses: list[int]) -> None:
    """End after all else that is done at an exit: to take apart what was imported costs more than the start."""
    if statuses:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(statuses[0] & 0xFF)


if __name__ == "__main__":
    _main()
