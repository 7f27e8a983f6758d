"""Checks of what can be done to other processes, and of what stays behind."""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.sandbox.conformance.attack import (
    LIMITS,
    Check,
    attack,
    fail_if,
    processes_with,
    register,
    send,
    token,
    victim,
)
from re_bench.sandbox.spec import SandboxSpec

if TYPE_CHECKING:
    from re_bench.sandbox.spec import Backend

CHECKS: dict[str, Check] = {}
check = register(CHECKS)

_VARIABLE = "RE_BENCH_CONFORMANCE"
_SOON_S = 20.0  # from the start of the sandbox on, on a busy machine
_STAYS_S = 60  # of what is to be stopped, so long that an end by itself is told from one that was made


def _search(*backwards: str) -> list[str]:
    """Attack: look for a word and a file in all that ``/proc`` says of processes, so they are given backwards."""
    word, path = backwards[0][::-1].encode(), backwards[1][::-1]
    got = []
    # Where nothing can be listed, numbers can still be guessed.
    guessed = [Path(f"/proc/{pid}") for pid in (1, os.getppid(), *range(max(2, os.getpid() - 300), os.getpid()))]
    for directory in {*Path("/proc").glob("[0-9]*"), *guessed}:
        for name in ("environ", "cmdline"):
            with suppress(OSError):
                if word in Path(directory, name).read_bytes():
                    got.append(f"{directory}/{name} shows what is outside")
        for name in ("root", "cwd", "task/" + directory.name + "/root"):
            with suppress(OSError):
                Path(f"{directory}/{name}{path}").read_bytes()
                got.append(f"{directory}/{name} leads outside")
        with suppress(OSError):
            for link in Path(directory, "fd").iterdir():
                with suppress(OSError):
                    if word in os.fsencode(link.readlink()):
                        got.append(f"{link} leads outside")
    return got


@check
def secrets_in_proc(backend: Backend, scratch: Path) -> None:
    """No process outside shows its command line, environment, descriptors or root; nor does the sandbox's own first."""
    word = token()
    path = scratch / word
    path.write_text("secret", encoding="ascii")
    os.environ[_VARIABLE] = word
    try:
        with victim(word), path.open("rb"):
            fail_if(attack(backend, _search, word[::-1], str(path)[::-1]))
    finally:
        del os.environ[_VARIABLE]


def _variables() -> dict[str, str]:
    """Attack: return the environment."""
    return dict(os.environ)


@check
def environment(backend: Backend, scratch: Path) -> None:
    """The environment holds what is given and nothing of ours."""
    del scratch
    os.environ[_VARIABLE] = word = token()
    try:
        spec = SandboxSpec(environment={"GIVEN": "yes"}, limits=LIMITS)
        seen = attack(backend, _variables, spec=spec)
    finally:
        del os.environ[_VARIABLE]
    fail_if([f"{name} is {value}" for name, value in seen.items() if word in value])
    fail_if([] if seen.get("GIVEN") == "yes" else "a variable that was given is missing")


def _descriptors() -> list[str]:
    """Attack: return what the open descriptors are, but for the standard three and the listing itself."""
    descriptions = []
    for number in range(3, 4096):
        with suppress(OSError):
            descriptions.append(f"descriptor {number} is {Path(f'/proc/self/fd/{number}').readlink()}")
    return descriptions


@check
def inherited_descriptors(backend: Backend, scratch: Path) -> None:
    """A descriptor that is open and inheritable here is not open inside."""
    with (scratch / "secret").open("wb") as file:
        low = os.dup2(file.fileno(), 9, inheritable=True) if not _is_open(9) else os.dup(file.fileno())
        high = os.dup2(file.fileno(), 250, inheritable=True) if not _is_open(250) else os.dup(file.fileno())
        try:
            fail_if(attack(backend, _descriptors))
        finally:
            os.close(low)
            os.close(high)


def _is_open(descriptor: int) -> bool:
    with suppress(OSError):
        os.fstat(descriptor)
        return True
    return False


def _signal(pid: int) -> list[str]:
    """Attack: end a process, and its group."""
    got = []
    for send_to in (os.kill, os.killpg):
        with suppress(OSError):
            send_to(pid, signal.SIGKILL)
            got.append(f"{send_to.__name__} of process {pid} outside")
    with suppress(OSError):
        reading, writing = os.pipe()
        fcntl.fcntl(reading, fcntl.F_SETOWN, pid)
        fcntl.fcntl(reading, 10, signal.SIGKILL)  # F_SETSIG
        fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
        os.write(writing, b"x")
    return got


@check
def signals(backend: Backend, scratch: Path) -> None:
    """A process outside gets no signal."""
    del scratch
    with victim(token()) as process:
        got = attack(backend, _signal, process.pid)
        time.sleep(0.02)
        fail_if([*got, *([] if process.poll() is None else ["a process outside was ended"])])


def _trace(pid: int) -> list[str]:
    """Attack: trace a process, read its memory, and take its descriptors."""
    libc = ctypes.CDLL(None, use_errno=True)
    got = []
    if libc.ptrace(0x4206, pid, None, None) == 0:  # PTRACE_SEIZE, which does not stop the process
        got.append(f"process {pid} can be traced")
    with suppress(OSError), Path(f"/proc/{pid}/mem").open("rb"):
        got.append(f"the memory of process {pid} can be read")
    with suppress(OSError):
        handle = os.pidfd_open(pid)
        if libc.syscall(438, handle, 0, 0) >= 0:  # pidfd_getfd, the same number everywhere
            got.append(f"the descriptors of process {pid} can be taken")
    return got


@check
def tracing(backend: Backend, scratch: Path) -> None:
    """A process outside cannot be traced, nor its memory be read."""
    del scratch
    with victim(token()) as process:
        fail_if(attack(backend, _trace, process.pid))


def _disturb(pid: int) -> bool:
    """Attack: change what a process may use, and how soon it gets it."""
    for change in (
        lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, 1)),
        lambda: os.sched_setaffinity(pid, [min(os.sched_getaffinity(0))]),
        lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
        lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
        lambda: Path(f"/proc/{pid}/oom_score_adj").write_text("1000", encoding="ascii"),
    ):
        with suppress(OSError):
            change()
    return True


def _disturbable(pid: int) -> list[object]:
    """Return what :func:`_disturb` changes."""
    limits, cores = resource.prlimit(pid, resource.RLIMIT_FSIZE), os.sched_getaffinity(pid)
    scheduler, priority = os.sched_getscheduler(pid), os.getpriority(os.PRIO_PROCESS, pid)
    return [limits, cores, scheduler, priority, Path(f"/proc/{pid}/oom_score_adj").read_text(encoding="ascii")]


@check
def limits_of_others(backend: Backend, scratch: Path) -> None:
    """The limits, cores and priority of a process outside stay as they are."""
    del scratch
    with victim(token()) as process:
        before = _disturbable(process.pid)
        attack(backend, _disturb, process.pid)
        after = _disturbable(process.pid)
        fail_if(
            [f"{one} of a process outside became {two}" for one, two in zip(before, after, strict=True) if one != two]
        )


def _detach(seconds: str, stay: bool) -> bool:
    """Attack: leave daemons that have nothing to do with their parents, one deaf to signals and one holding stdout."""
    for quiet in (True, False):
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            if quiet:
                os.closerange(0, 64)
            os.execvp("sleep", ["sleep", seconds])  # noqa: S606 - it is a daemon
        os.wait()
    if stay:
        time.sleep(_STAYS_S)
    time.sleep(0.05)
    return True


@check
def daemons(backend: Backend, scratch: Path) -> None:
    """Daemons are gone after the program's own end and after a time-out, at once."""
    del scratch
    for stay in (False, True):
        seconds = f"3{int.from_bytes(os.urandom(3), 'big')}.25"
        spec = SandboxSpec(limits=replace(LIMITS, wall_s=0.5 if stay else _STAYS_S))
        finished = send(backend, _detach, seconds, stay, spec=spec)
        left = processes_with(f"sleep {seconds}")
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        fail_if([f"{line.strip()!r} still runs after the end" for line in left.values()])
        fail_if("a time limit did not end it" if stay and not finished.stopped else "")
        fail_if(f"the end took {finished.seconds:.1f} s" if finished.seconds > _SOON_S else "")


def _hop(end: float) -> None:
    """Leave the rest of the time to a child, which does the same."""
    while time.monotonic() < end:
        with suppress(OSError):
            if os.fork():
                break
    os._exit(0)


def _linger() -> bool:
    """Attack: make processes faster than they can be killed one by one."""
    end = time.monotonic() + _STAYS_S
    with suppress(OSError):  # the number of processes is limited
        for _ in range(8):
            if os.fork() == 0:
                _hop(end)
    time.sleep(_STAYS_S + 1)
    return True


@check
def processes_that_keep_changing(backend: Backend, scratch: Path) -> None:
    """A program whose processes are replaced all the time ends at the time limit like any other."""
    del scratch
    finished = send(backend, _linger, spec=SandboxSpec(limits=replace(LIMITS, wall_s=0.5)))
    fail_if("" if finished.stopped else f"it ended with status {finished.status}")
    fail_if(f"the end took {finished.seconds:.1f} s" if finished.seconds > _SOON_S else "")
