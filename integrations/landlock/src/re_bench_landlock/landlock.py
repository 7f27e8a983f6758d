"""The backend for a machine that allows no namespaces: Landlock's rules and a seccomp filter hold a child process.

It needs no privilege. :mod:`re_bench_landlock.supervisor` confines the program and ends all of it. Nothing is
mounted, so everything shown is where it is outside, and ``/tmp`` and ``/dev/shm`` are out of reach: ``TMPDIR`` is a
directory of the program's own.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import UsageError
from re_bench.limits import Limits
from re_bench.sandbox import seccomp
from re_bench.sandbox.bubblewrap import (
    DRIVER,
    DRIVER_LIBRARIES,
    ETC,
    GPU_PROFILER,
    GPU_TOPOLOGY,
    SYSTEM,
    device_nodes,
    private_user,
)
from re_bench.sandbox.process import end_process, run
from re_bench.sandbox.spec import Launch, SandboxSpec, SandboxUnavailableError, base_environment, python_directories
from re_bench_landlock import kernel, supervisor, system_calls
from re_bench_landlock.other_user import need_readable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

VERSION = "RE_BENCH_LANDLOCK_ABI"
"""The environment variable that has an older version of Landlock used than the kernel's, to see what that holds."""

_KERNEL = (
    *(f"/proc/{name}" for name in ("cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems")),
    "/proc/sys/vm", "/proc/sys/kernel/osrelease", "/sys/devices/system", "/sys/kernel/mm/transparent_hugepage",
)  # fmt: skip
_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))
_OF_A_GPU = (*GPU_TOPOLOGY, GPU_PROFILER, "/proc/driver/nvidia", "/proc/devices")
_TO_CHANGE_USER = 0b11 << 6  # CAP_SETGID and CAP_SETUID of <linux/capability.h>
_MIB = 1 << 20
_END_S = 10.0


class Landlock:
    """Files by Landlock's rules, no sockets, no signals to others; as root, also a user id that nobody else has."""

    sessions = False
    sockets = False

    @property
    def name(self) -> str:
        """``landlock`` with the version that is used, and whether programs stay root."""
        return f"landlock ABI {_version()}" + " as root" * _stays_root()

    @property
    def python(self) -> str:
        """This interpreter."""
        return sys.executable

    def probe(self) -> None:
        """Run this interpreter, confined.

        Raises:
            SandboxUnavailableError: if the kernel, a container's settings or the lack of libseccomp do not allow it.
            UsageError: if the variable :data:`VERSION` names no version that is here.
        """
        _version()
        if not seccomp.available():
            raise SandboxUnavailableError(
                "no sandbox: libseccomp not found, without which Landlock leaves too much open; install it with "
                "`apt-get install libseccomp2` or your system's equivalent"
            )
        finished = run(self, [self.python, "-I", "-c", ""], SandboxSpec(limits=Limits(wall_s=30)))
        if finished.status != 0:
            reason = finished.stderr.strip() or finished.status
            raise SandboxUnavailableError(f"no sandbox: Landlock cannot confine {self.python} here ({reason})")

    def launch(self, program: Sequence[str], spec: SandboxSpec) -> Launch:
        """Return how to start ``program``, confined. What it writes into its own directory is bounded from outside.

        A word of ``program`` that is the path of a socket is connected to, since the program can connect to none, and
        becomes ``descriptor:N``.

        Raises:
            SandboxUnavailableError: if ``spec`` shows a path elsewhere, a socket, or what another user cannot read, or
                keeps something in a writable directory from being written.
        """
        user = (private_user() if spec.user is None else spec.user) if _changes_user() else None
        shown = {**spec.read_only, **spec.writable}
        for inside, outside in shown.items():
            _check_shown(inside, outside)
            if user is not None:
                need_readable(outside.resolve(), self.name)
        _check_writable(spec)
        shown_rules = _rules(spec)
        own = Path(tempfile.mkdtemp(prefix="re-bench-landlock-"))
        if user is not None:
            os.chown(own, user, user)
        plan = supervisor.Plan(
            program=list(program),
            environment=_environment(spec, own),
            directory=str(own) if spec.directory == SandboxSpec.directory else spec.directory,
            rules=[*shown_rules, (str(own), "write")],
            abi=_version(),
            filters=[
                rules.hex() for rules in (seccomp.program(), system_calls.program(_version(), same_user=user is None))
            ],
            limits=_limits(spec.limits, gpu=spec.gpu is not None),
            processes=spec.limits.processes,
            gate=system_calls.process_gate(),
            user=user,
            connected=[number for number, word in enumerate(program) if _is_socket(Path(word))],
            starter=os.getpid(),
        )
        return Launch(
            [sys.executable, "-I", "-S", supervisor.__file__, str(descriptor := _memory_file(plan))],
            (descriptor,),
            cleanup=partial(_remove, own),
            environment={"PATH": os.environ.get("PATH", os.defpath)},
            end=_end,
            user=user,
            own=(own,),
        )


def _version() -> int:
    """Return the version of Landlock to use.

    Raises:
        SandboxUnavailableError: if the kernel has none.
        UsageError: if the variable :data:`VERSION` names none that is here.
    """
    try:
        newest = min(kernel.abi(), kernel.NEWEST_ABI)
    except OSError as error:
        raise SandboxUnavailableError(
            f"no sandbox: this kernel offers no Landlock here ({error.strerror}); it takes Linux 5.13 or later with "
            "CONFIG_SECURITY_LANDLOCK, `landlock` in the kernel's parameter lsm=, and in a container a filter of "
            "system calls that allows it, as Docker's own does in recent versions"
        ) from None
    wanted = os.environ.get(VERSION, str(newest))
    if wanted not in map(str, range(1, newest + 1)):
        raise UsageError(f"{VERSION} is {wanted!r}; this machine has Landlock's versions 1 to {newest}")
    return int(wanted)


@cache
def _changes_user() -> bool:
    """Tell whether we are root, may become another user, and have a Python that others may read."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    effective = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:"))
    if os.geteuid() != 0 or effective & _TO_CHANGE_USER != _TO_CHANGE_USER:
        return False
    with suppress(SandboxUnavailableError):
        for path in (Path(sys.prefix), Path(sys.executable).resolve()):
            need_readable(path, "landlock")
        return True
    return False


def _stays_root() -> bool:
    return os.geteuid() == 0 and not _changes_user()


def _check_shown(inside: str, outside: Path) -> None:
    if inside != str(outside):
        raise SandboxUnavailableError(f"the backend 'landlock' cannot show {outside} as {inside}; use bubblewrap")
    if _is_socket(outside):
        raise SandboxUnavailableError(
            f"the backend 'landlock' cannot show the socket {outside}: a program that may connect to one may "
            "connect to all that its user can, Docker's and D-Bus's too; use bubblewrap or container"
        )


def _check_writable(spec: SandboxSpec) -> None:
    """Do nothing, or refuse what lies in a writable directory and may not be written: a rule holds for all below."""
    tops = {path.resolve() for path in spec.writable.values()}
    for path in {path.resolve() for path in (*spec.read_only.values(), *spec.hidden) if path.exists()}:
        for top in tops.intersection(path.parents):
            raise SandboxUnavailableError(
                f"the backend 'landlock' cannot keep {path} from being written, which lies in {top}; use bubblewrap"
            )


def _is_socket(path: Path) -> bool:
    with suppress(OSError, ValueError):
        return stat.S_ISSOCK(path.stat().st_mode)
    return False


def _environment(spec: SandboxSpec, own: Path) -> dict[str, str]:
    environment = base_environment(str(own), spec.gpu) | {"TMPDIR": str(own)}
    libraries = [str(path) for path in DRIVER_LIBRARIES if path.is_dir()]
    if spec.gpu and libraries:
        environment["LD_LIBRARY_PATH"] = ":".join(libraries)
    return environment | dict(spec.environment)


def _limits(limits: Limits, *, gpu: bool) -> dict[str, int]:
    """Return what bounds each process; see :func:`re_bench.sandbox.bubblewrap.rlimits` about a ``gpu``."""
    data = {} if gpu else {"DATA": limits.memory_mib * _MIB}
    own = {"CPU": limits.cpu_s, "FSIZE": limits.file_mib * _MIB, "NOFILE": limits.open_files, "CORE": 0}
    return data | own


def _rules(spec: SandboxSpec) -> Iterator[tuple[str, str]]:
    """Yield what may be done with files, of the deepest path that ``spec`` or we show or hide."""
    driver = [DRIVER] if spec.gpu else []
    system = [*map(Path, (*SYSTEM, *ETC)), *python_directories(), *driver]
    devices = [*_DEVICES, *map(str, device_nodes(spec.gpu) if spec.gpu else ())]
    hidden = {os.path.realpath(path) for path in spec.hidden if path.is_dir()}
    named = {os.path.realpath(path) for path in (*spec.read_only.values(), *spec.writable.values())}
    for kind, tops in (("read", [*system, *spec.read_only.values()]), ("write", [*spec.writable.values()])):
        for top in dict.fromkeys(os.path.realpath(path) for path in tops):
            yield from _around(top, kind, hidden - named)
    yield from ((path, "read") for path in (*_KERNEL, *(_OF_A_GPU if spec.gpu else ())))
    yield from ((path, "device") for path in devices)


def _around(top: str, kind: str, hidden: set[str]) -> Iterator[tuple[str, str]]:
    """Yield rules for all below ``top`` but for what is hidden there.

    A rule holds for everything below, so that around something hidden each neighbour needs its own. Of the directories
    that lead there, and thus of the hidden one too, names can still be listed: without them, Python imports nothing.
    """
    if top in hidden:
        return
    if not any(path.startswith(f"{top.rstrip('/')}/") for path in hidden):
        yield top, kind
        return
    yield top, "list"
    with os.scandir(top) as entries:
        for entry in entries:
            if not entry.is_symlink():  # what it leads to has rules of its own, or none
                yield from _around(entry.path, kind, hidden)


def _memory_file(plan: supervisor.Plan) -> int:
    """Return a descriptor from which ``plan`` can be read."""
    descriptor = os.memfd_create("re-bench-landlock", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(descriptor), "w", encoding="utf-8", errors="surrogateescape") as file:
        json.dump(asdict(plan), file)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _remove(directory: Path) -> None:
    """Remove a program's own directory, however deep it has made it."""
    subprocess.run(["rm", "-rf", "--", directory], check=False, stderr=subprocess.DEVNULL)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Have the supervisor end all that it has started; where it does not, do so as far as that can be seen."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_S)
    end_process(process)
