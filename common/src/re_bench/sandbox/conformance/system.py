"""Checks of what can be done to the kernel, and of what stays behind in it."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.sandbox.conformance.attack import Check, attack, fail_if, register, spec_showing, token

if TYPE_CHECKING:
    from re_bench.sandbox.spec import Backend

CHECKS: dict[str, Check] = {}
check = register(CHECKS)

_CALLS = {
    "x86_64": {"clone": 56, "add_key": 248, "keyctl": 250, "userfaultfd": 323, "bpf": 321},
    "aarch64": {"clone": 220, "add_key": 217, "keyctl": 219, "userfaultfd": 282, "bpf": 280},
}
_SPACES = {
    "mount": 0x00020000, "cgroup": 0x02000000, "uts": 0x04000000, "ipc": 0x08000000,
    "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000,
}  # fmt: skip


def _open_kernel() -> list[str]:
    """Attack: open what shows the kernel's memory, and for writing, which alone changes nothing, its settings."""
    got = []
    for path in ("/proc/kcore", "/proc/kmsg", "/dev/mem", "/dev/kmsg", "/dev/port", "/sys/kernel/debug/sched/debug"):
        with suppress(OSError):
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            got.append(f"{path} can be read")
    settings = ["/proc/sysrq-trigger", "/proc/mtrr"]
    for top in ("/proc/sys", "/proc/irq", "/sys/fs/cgroup", "/sys/power", "/sys/kernel"):
        settings += [f"{directory}/{name}" for directory, _inner, names in os.walk(top) for name in names][:4000]
    for path in settings:
        with suppress(OSError):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            got.append(f"{path} can be written")
    return got


@check
def settings_of_the_kernel(backend: Backend, scratch: Path) -> None:
    """Nothing in ``/proc`` and ``/sys`` shows the kernel's memory or changes its settings."""
    del scratch
    fail_if(attack(backend, _open_kernel))


def _new_spaces() -> list[str]:
    """Attack: make namespaces, in which one would be root."""
    libc = ctypes.CDLL(None, use_errno=True)
    clone = _CALLS.get(os.uname().machine, {}).get("clone")
    got = []
    for name, flag in _SPACES.items():
        child = os.fork()
        if child == 0:
            os._exit(1 if libc.unshare(flag) == 0 else 0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            got.append(f"a {name} namespace by unshare")
        if clone is not None:
            child = libc.syscall(clone, flag | 17, 0, 0, 0, 0)  # 17 is SIGCHLD
            if child == 0:
                os._exit(0)
            if child > 0:
                os.waitpid(child, 0)
                got.append(f"a {name} namespace by clone")
    return got


@check
def namespaces(backend: Backend, scratch: Path) -> None:
    """No namespaces can be made."""
    del scratch
    fail_if(attack(backend, _new_spaces))


def _mount(directory: str) -> list[str]:
    """Attack: mount something, and change the root; undo it at once."""
    libc = ctypes.CDLL(None, use_errno=True)
    got = []
    for kind, source, flags in ((b"tmpfs", b"none", 0), (b"proc", b"none", 0), (None, b"/", 4096)):  # MS_BIND
        if libc.mount(source, os.fsencode(directory), kind, flags, None) == 0:
            libc.umount2(os.fsencode(directory), 2)  # MNT_DETACH
            got.append(f"{(kind or b'another directory').decode()} can be mounted")
    if libc.mount(None, b"/usr", None, 32 | 4096, None) == 0:  # MS_REMOUNT | MS_BIND
        got.append("/usr can be made writable")
    child = os.fork()
    if child == 0:
        os._exit(1 if libc.chroot(os.fsencode(directory)) == 0 else 0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        got.append("the root can be changed")
    return got


@check
def mounts(backend: Backend, scratch: Path) -> None:
    """Nothing can be mounted, and the mounts of the sandbox are gone afterwards."""
    work = scratch / "work"
    before = _mounted()
    got = attack(backend, _mount, str(work), spec=spec_showing(write=work))
    deadline = time.monotonic() + 1
    while (left := _mounted() - before) and time.monotonic() < deadline:
        time.sleep(0.05)  # what somebody else mounts for a moment is not ours
    fail_if([*got, *(f"{line} is still mounted" for line in sorted(left))])


def _mounted() -> set[str]:
    """Return the mount points that this process sees."""
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()}


def _privileges(program: str) -> list[str]:
    """Attack: be root, become root, and run a program that makes one root."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    # A bound on capabilities to come says nothing where no program brings any.
    sets = [name for name in status if name.startswith("Cap") and (name != "CapBnd" or status["NoNewPrivs"] != "1")]
    got = [f"{name} is {status[name]}" for name in sets if int(status[name], 16)]
    if status["NoNewPrivs"] != "1":
        got.append("programs may raise privileges")
    if 0 in (*os.getresuid(), *os.getresgid(), *os.getgroups()):
        got.append("it runs as root or in root's group")
    for become in (os.setuid, os.setgid):
        with suppress(OSError):
            become(0)
            got.append("root can be had")
    with suppress(OSError):
        ran = subprocess.run([program, "-u"], capture_output=True, text=True, check=False)
        if ran.stdout.strip() == "0":
            got.append("a set-user-id program makes one root")
    return got


@check
def privileges(backend: Backend, scratch: Path) -> None:
    """The program is not root, has no capability, and gains nothing by set-user-id programs."""
    spec = spec_showing(read=scratch / "shown")
    program = scratch / "shown" / "id"
    shutil.copy(shutil.which("id") or "/usr/bin/id", program)
    program.chmod(0o755 | stat.S_ISUID)
    fail_if(attack(backend, _privileges, str(program), spec=spec))


def _call_the_kernel() -> list[str]:
    """Attack: make calls that act beside a filter of calls, or on the kernel."""
    libc = ctypes.CDLL(None, use_errno=True)
    own = _CALLS.get(os.uname().machine, {})
    room = ctypes.create_string_buffer(512)
    tries = {
        425: ("io_uring", 1, room),
        own.get("userfaultfd", -1): ("userfaultfd", 1),
        own.get("bpf", -1): ("bpf", 0, room, 72),
    }
    return [f"{name} is allowed" for number, (name, *rest) in tries.items() if libc.syscall(number, *rest) >= 0]


@check
def calls_of_the_kernel(backend: Backend, scratch: Path) -> None:
    """Neither ``io_uring``, whose operations no filter of calls sees, nor the kernel's own programs can be used."""
    del scratch
    fail_if(attack(backend, _call_the_kernel))


def _leave_objects(key: int, name: str) -> bool:
    """Attack: leave objects that outlive processes."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmget(key, 4096, 0o1666)
    libc.msgget(key, 0o1666)
    libc.semget(key, 1, 0o1666)
    with suppress(OSError):
        Path(f"/dev/shm/{name}").write_text("left", encoding="ascii")  # noqa: S108
    with suppress(AttributeError):
        libc.mq_open(f"/{name}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
    return True


def _remove_objects(key: int, name: str) -> list[str]:
    """Remove the objects of that key and name, and return which there were."""
    libc = ctypes.CDLL(None, use_errno=True)
    removed = []
    for kind, get in (("shm", libc.shmget), ("sem", libc.semget), ("msg", libc.msgget)):
        number = get(key, 0) if kind == "msg" else get(key, 0, 0)
        if number >= 0:
            removed.append(f"System V {kind}")
            getattr(libc, f"{kind}ctl")(number, 0, 0, None)  # IPC_RMID is 0, and so is the first semaphore
    if hasattr(libc, "mq_unlink") and libc.mq_unlink(f"/{name}".encode()) == 0:
        removed.append("a POSIX message queue")
    with suppress(OSError):
        Path(f"/dev/shm/{name}").unlink()  # noqa: S108
        removed.append("POSIX shared memory")
    return removed


@check
def objects_that_outlive_processes(backend: Backend, scratch: Path) -> None:
    """No shared memory, semaphore or message queue is left."""
    del scratch
    name, key = token(), int.from_bytes(os.urandom(3), "big") + 1
    attack(backend, _leave_objects, key, name)
    fail_if([f"{kind} is left" for kind in _remove_objects(key, name)])


def _find_objects(key: int, name: str, segment: int) -> list[str]:
    """Attack: open what others share."""
    libc = ctypes.CDLL(None, use_errno=True)
    got = [] if libc.shmget(key, 0, 0) < 0 else ["System V shared memory of others"]
    libc.shmat.restype = ctypes.c_ssize_t
    if libc.shmat(segment, None, 0o10000) != -1:  # SHM_RDONLY
        got.append("System V shared memory of others, by its number")
    with suppress(OSError):
        Path(f"/dev/shm/{name}").read_bytes()  # noqa: S108
        got.append("POSIX shared memory of others")
    if hasattr(libc, "mq_open") and libc.mq_open(f"/{name}".encode(), os.O_RDONLY) >= 0:
        got.append("a POSIX message queue of others")
    return got


@check
def objects_of_others(backend: Backend, scratch: Path) -> None:
    """Shared memory and message queues of this machine cannot be opened."""
    del scratch
    libc = ctypes.CDLL(None, use_errno=True)
    name, key = token(), int.from_bytes(os.urandom(3), "big") + 1
    segment = libc.shmget(key, 4096, 0o1666)
    shared = Path(f"/dev/shm/{name}")  # noqa: S108
    shared.write_text("shared", encoding="ascii")
    queue = libc.mq_open(f"/{name}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None) if hasattr(libc, "mq_open") else -1
    try:
        fail_if(attack(backend, _find_objects, key, name, segment))
    finally:
        shared.unlink()
        libc.shmctl(segment, 0, None)
        if queue >= 0:
            os.close(queue)
            libc.mq_unlink(f"/{name}".encode())


def _keys(serial: int, name: str) -> list[str]:
    """Attack: read a key of others, and leave one."""
    libc = ctypes.CDLL(None, use_errno=True)
    calls = _CALLS[os.uname().machine]
    buffer = ctypes.create_string_buffer(64)
    got = []
    if serial > 0 and libc.syscall(calls["keyctl"], 11, serial, buffer, 64, 0) > 0:  # KEYCTL_READ
        got.append("a key of ours can be read")
    if libc.syscall(calls["add_key"], b"user", name.encode(), b"left", 4, -4) > 0:  # the user's keyring
        got.append("a key can be left with the kernel")
    return got


@check
def keys(backend: Backend, scratch: Path) -> None:
    """The kernel's keyrings show no key of ours and take none."""
    del scratch
    libc = ctypes.CDLL(None, use_errno=True)
    calls = _CALLS.get(os.uname().machine)
    if calls is None:
        return
    name = token()
    serial = libc.syscall(calls["add_key"], b"user", name.encode(), b"secret", 6, -3)  # the session's keyring
    try:
        fail_if(attack(backend, _keys, serial, name + "-left"))
    finally:
        libc.syscall(calls["keyctl"], 21, serial, 0, 0, 0)  # KEYCTL_INVALIDATE
        left = libc.syscall(calls["keyctl"], 10, -4, b"user", f"{name}-left".encode(), 0)  # KEYCTL_SEARCH
        if left > 0:
            libc.syscall(calls["keyctl"], 21, left, 0, 0, 0)
