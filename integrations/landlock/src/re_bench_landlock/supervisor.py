"""The program that the backend ``landlock`` starts: it confines another one, waits for it, and ends all that is left.

Run as ``python -I -S landlock_supervisor.py DESCRIPTOR``, from which it reads a JSON object: :class:`Plan`. It becomes
the parent of every orphan among its descendants, so that none gets out of sight, and on SIGTERM it ends them all. The
exit status is the program's, or 128 plus the number of the signal that ended it.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

_POLL_S = 0.02
_FAILED = 126
_MOST_PROCESSES = 1 << 22


@dataclass(frozen=True)
class Plan:
    """What to start, and how it is confined."""

    program: list[str]
    environment: dict[str, str]
    directory: str
    rules: list[tuple[str, str]]
    """What the program may do with files, as :func:`re_bench_landlock.kernel.rule_set` takes it."""
    abi: int
    """The version of Landlock to use."""
    filters: list[str]
    """Seccomp filters, in hexadecimal."""
    limits: dict[str, int]
    """Hard limits of each process, by the names in :mod:`resource`."""
    processes: int
    """How many processes and threads there may be at a time."""
    gate: tuple[str, int]
    """The filter of :mod:`re_bench_landlock.process_gate` in hexadecimal, and the number of the system call for it."""
    user: int | None
    """The user id that nobody else has, to run the program as; None to stay who we are."""
    connected: list[int]
    """Which words of ``program`` are paths of sockets: each is connected to, and becomes ``descriptor:N``."""
    starter: int
    """The process id of who started us."""


def main() -> NoReturn:
    """Do what the module says."""
    sys.path.append(str(Path(__file__).parents[1]))
    from re_bench_landlock import kernel  # noqa: PLC0415 - which is found only then

    with os.fdopen(int(sys.argv[1]), "rb") as file:
        plan = Plan(**json.load(file))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    kernel.end_with_parent(signal.SIGTERM)
    if os.getppid() != plan.starter:  # it ended before we could ask for the signal
        sys.exit(_FAILED)
    kernel.adopt_orphans()
    scoped = plan.user is None and plan.abi >= kernel.SCOPES
    if scoped:
        _scope_our_signals(plan.starter)
    others = _processes_of_user() if plan.user is None else 0
    if others is None and not scoped:
        sys.exit("landlock: below version 6, root's programs cannot all be found and ended; run as another user")
    rules = kernel.rule_set(plan.rules, plan.abi)
    ours, theirs = socket.socketpair()
    first = os.fork()
    if first == 0:
        _become(plan, rules, others, theirs)
    theirs.close()
    if others is None:
        _answer(ours, plan.processes)
    for path, _kind in kernel.of_process(first):  # whose rules hold as long as these are open
        with suppress(FileNotFoundError):
            os.open(path, os.O_PATH)
    status = _wait(first, plan.processes if others is None else None)
    _end_all(plan.user, scoped=scoped)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _scope_our_signals(outside: int) -> None:
    """Confine our own signals to our descendants, so that one to everybody reaches those alone.

    Raises:
        OSError: if a signal would still reach who is outside.
    """
    from re_bench_landlock import kernel  # noqa: PLC0415 - as above

    kernel.restrict(kernel.signal_scope(), kernel.SCOPES)
    with suppress(PermissionError):
        os.kill(outside, 0)
        raise OSError("signals are not confined")


def _answer(channel: socket.socket, most: int) -> None:
    """Answer for each new process, unless the program could not be made to ask: then they are only counted."""
    from re_bench_landlock import process_gate  # noqa: PLC0415 - as above

    _message, descriptors, _flags, _address = socket.recv_fds(channel, 4, 1)
    for listener in descriptors:
        process_gate.ProcessGate(listener, most, _tasks)


def _become(plan: Plan, rules: int, others: int | None, channel: socket.socket) -> NoReturn:
    """Become the program; say on stderr why, if that fails."""
    try:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGCHLD})
        _confine(plan, rules, others, channel)
        os.execvpe(plan.program[0], plan.program, plan.environment)  # noqa: S606 - no shell is wanted
    except BaseException as error:  # noqa: BLE001 - nothing of us may go on as the program
        os.write(2, f"landlock: {plan.program[0]} cannot be started: {error}\n".encode())
    os._exit(_FAILED)


def _confine(plan: Plan, rules: int, others: int | None, channel: socket.socket) -> None:
    from re_bench_landlock import kernel, process_gate  # noqa: PLC0415 - as above

    supervisor = os.getppid()
    kernel.allow_process(rules, os.getpid())
    kernel.drop_bounding_set()
    if plan.user is not None:
        os.setgroups([])
        os.setresgid(plan.user, plan.user, plan.user)
        os.setresuid(plan.user, plan.user, plan.user)
    kernel.drop_capabilities()
    kernel.end_with_parent(signal.SIGKILL)  # which a change of user would undo
    if os.getppid() != supervisor:
        raise OSError("the supervisor has ended")
    os.chdir(plan.directory)
    for index in plan.connected:
        plan.program[index] = f"descriptor:{_connected(plan.program[index])}"
    if others is not None:
        _limit(resource.RLIMIT_NPROC, others + plan.processes)
    for name, most in plan.limits.items():
        _limit(getattr(resource, f"RLIMIT_{name}"), most)
    kernel.restrict(rules, plan.abi)
    os.close(rules)
    if others is None:
        filter_, call = plan.gate
        with suppress(OSError):  # where the kernel cannot ask, they are only counted
            process_gate.ask_through(channel, bytes.fromhex(filter_), call)
    channel.close()
    for program in plan.filters:
        kernel.install_filter(bytes.fromhex(program))


def _connected(path: str) -> int:
    """Return a descriptor, which the program inherits, of a connection to a Unix socket."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    connection.set_inheritable(True)
    return connection.detach()


def _limit(which: int, most: int) -> None:
    hard = resource.getrlimit(which)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))


def _processes_of_user() -> int | None:
    """Return how many processes and threads our user has, or None if the kernel does not limit them, which are root's.

    The kernel also counts those in other containers, which cannot be seen; so it is asked, by trying to start one more.
    """
    before = resource.getrlimit(resource.RLIMIT_NPROC)
    if _can_fork(0, before[1]):
        resource.setrlimit(resource.RLIMIT_NPROC, before)
        return None
    low, high = 0, 64
    while high < _MOST_PROCESSES and not _can_fork(high, before[1]):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _can_fork(middle, before[1]) else (middle, high)
    resource.setrlimit(resource.RLIMIT_NPROC, before)
    return high - 1


def _can_fork(limit: int, hard: int) -> bool:
    """Tell whether a process can be started where so many are allowed."""
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, hard))
    try:
        child = os.fork()
    except BlockingIOError:
        return False
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True


def _wait(first: int, processes: int | None) -> int:
    """Wait for the program, and for orphans meanwhile; end it on SIGTERM, or with more than so many processes.

    Returns:
        Its status as :func:`os.waitpid` has it, or that of one that was killed.
    """
    while True:
        if processes is None:
            number = signal.sigwait({signal.SIGTERM, signal.SIGCHLD})
        else:
            info = signal.sigtimedwait({signal.SIGTERM, signal.SIGCHLD}, _POLL_S)
            number = signal.Signals(info.si_signo) if info else signal.SIGALRM
            if _tasks() > processes:
                os.write(2, f"landlock: more than {processes} processes and threads\n".encode())
                return signal.SIGKILL
        if number == signal.SIGTERM:
            return signal.SIGKILL
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == first:
                    return ended[1]


def _end_all(user: int | None, *, scoped: bool) -> None:
    """End all descendants, and wait until they have ended.

    One signal to everybody leaves no moment in which another could be started. It is one to everybody of ``user``, or
    to everybody in our scope. Where there is neither, the dead are left unburied meanwhile: they count as processes of
    our user, so that descendants that replace each other run into their limit.
    """
    while not _buried():
        if user is not None:
            _kill_all_of(user)
        elif scoped:
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        else:
            while left := [pid for pid in _descendants() if _threads(pid)]:
                for pid in left:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, _POLL_S)


def _kill_all_of(user: int) -> None:
    try:
        if os.fork():
            return
    except BlockingIOError:  # the container's limit of processes is used up: what ends makes room
        for pid in _descendants():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return
    try:
        os.setresuid(user, user, user)
        os.kill(-1, signal.SIGKILL)
    finally:
        os._exit(0)


def _buried() -> bool:
    """Wait for the children that have ended; tell whether none is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _tasks() -> int:
    """Return how many processes and threads our descendants are."""
    return sum(_threads(pid) for pid in _descendants())


def _descendants() -> Iterator[int]:
    """Yield our descendants, as far as they can be seen."""
    waiting = _children(os.getpid())
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += _children(pid)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - Path is slow here
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:  # noqa: PTH123
                found += map(int, file.read().split())
    return found


def _threads(pid: int) -> int:
    """Return how many threads a process has; 0 if it has ended."""
    with suppress(OSError, IndexError, ValueError), open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - as above
        fields = file.read().rpartition(b")")[2].split()
        return 0 if fields[0] in {b"Z", b"X"} else int(fields[17])
    return 0


if __name__ == "__main__":
    main()
