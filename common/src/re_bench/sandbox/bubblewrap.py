"""The default backend on Linux: bubblewrap, https://github.com/containers/bubblewrap.

An ordinary user's sandbox lives in a user namespace. Root's does not: root holds the
mounts, then hands over to a user id that no other process on the machine has, because
the kernel exempts the real root's processes from the limit on their number.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.limits import Limits
from re_bench.sandbox import seccomp
from re_bench.sandbox.gpu_devices import device_nodes
from re_bench.sandbox.mounts import mounts
from re_bench.sandbox.process import run
from re_bench.sandbox.shown_everywhere import DRIVER, DRIVER_LIBRARIES, ETC, GPU_PROFILER, GPU_TOPOLOGY, SYSTEM
from re_bench.sandbox.spec import Launch, SandboxSpec, SandboxUnavailableError, base_environment, python_directories

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NOBODY = 65534
_FIRST_PRIVATE_ID = 1 << 30  # far above what distributions, containers and subuid ranges hand out
_MIB = 1 << 20
_GONE_S = 60.0
_NO_CAPABILITIES = ("--inh-caps=-all", "--bounding-set=-all")


class Bubblewrap:
    """Namespaces by ``bwrap``: own mounts, processes, network, IPC and host name; no capabilities."""

    @property
    def name(self) -> str:
        """``bubblewrap``, or a name that says that there is no filter of system calls."""
        return "bubblewrap" if seccomp.available() else "bubblewrap without seccomp"

    @property
    def python(self) -> str:
        """This interpreter, which the sandbox shows."""
        return sys.executable

    def probe(self) -> None:
        """Run ``true`` in a sandbox once per process.

        Raises:
            SandboxUnavailableError: if ``bwrap`` is missing or the kernel refuses it.
        """
        _probe()

    def launch(self, program: Sequence[str], spec: SandboxSpec) -> Launch:
        """Return the ``bwrap`` command line for ``program``."""
        outer = ["bwrap", *_namespaces(host_network=spec.host_network), *_filesystem(spec), *_environment(spec)]
        outer += ["--as-pid-1"] * spec.first
        inner = [
            *rlimits(spec.limits, gpu=spec.gpu is not None),
            *drop_root(spec.user),
            *program,
        ]
        rules = seccomp.open_filter()
        info_read, info_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        outer += ["--info-fd", str(info_write)]
        if rules is not None:
            outer += ["--seccomp", str(rules)]
        return Launch(
            [*outer, "--", *inner],
            (info_write,) if rules is None else (info_write, rules),
            cleanup=lambda: _wait_for_first_process(info_read),
            # bwrap stays as the first process inside, and /proc/1/environ shows what it was started with.
            environment={"PATH": os.environ.get("PATH", os.defpath)},
        )


def _wait_for_first_process(info: int) -> None:
    """Wait until the first process of the namespace is gone, and with it all others.

    bwrap itself ends when its program has, which may be a moment before the kernel has ended the rest.
    """
    with os.fdopen(info, "rb") as stream:
        text = stream.read() or b"{}"
    with suppress(ValueError, KeyError, ProcessLookupError):
        first = os.pidfd_open(json.loads(text)["child-pid"])
        try:
            select.select([first], [], [], _GONE_S)
        finally:
            os.close(first)


@lru_cache(maxsize=1)
def _probe() -> None:
    missing = [tool for tool in ("bwrap", "prlimit", "setpriv") if shutil.which(tool) is None]
    if missing:
        raise SandboxUnavailableError(
            f"no sandbox: {', '.join(missing)} not found; install it with "
            "`apt-get install bubblewrap util-linux` (Debian, Ubuntu) or your system's equivalent"
        )
    finished = run(Bubblewrap(), ["true"], SandboxSpec(limits=Limits(wall_s=30)))
    if finished.status != 0:
        raise SandboxUnavailableError(
            f"no sandbox: bwrap cannot make its namespaces here ({finished.stderr.strip() or finished.status}); "
            "`re-bench doctor` says why, and what mends it"
        )


def _namespaces(*, host_network: bool) -> list[str]:
    own = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    own += [] if host_network else ["--unshare-net"]
    common = [*own, "--hostname", "sandbox", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        kept = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")  # what setpriv needs to give up all of them
        return [*common, *(part for capability in kept for part in ("--cap-add", capability))]
    return ["--unshare-user", "--disable-userns", "--uid", str(_NOBODY), "--gid", str(_NOBODY), *common]


def private_user() -> int | None:
    """Return an id that no other process on the machine has, for root to hand over to; None for an ordinary user."""
    return _FIRST_PRIVATE_ID + int.from_bytes(os.urandom(3), "big") if os.geteuid() == 0 else None


def drop_root(user: int | None) -> list[str]:
    """Return the command that leaves root for a user id of its own, or nothing for an ordinary user."""
    if os.geteuid() != 0:
        return []
    private = str(private_user() if user is None else user)
    return ["setpriv", f"--reuid={private}", f"--regid={private}", "--clear-groups", *_NO_CAPABILITIES, "--"]


def rlimits(limits: Limits, *, gpu: bool = False) -> list[str]:
    """Return the ``prlimit`` command line that bounds each process of a program.

    It runs inside the sandbox, where the count of processes starts at zero. With a ``gpu`` there
    is no limit on data, because CUDA reserves address space for all the memory there is.
    """
    data = [] if gpu else [f"--data={limits.memory_mib * _MIB}"]
    return [
        "prlimit",
        f"--nproc={limits.processes}",
        f"--cpu={limits.cpu_s}",
        *data,
        f"--fsize={limits.file_mib * _MIB}",
        f"--nofile={limits.open_files}",
        "--core=0",
        "--",
    ]


def _filesystem(spec: SandboxSpec) -> Iterator[str]:
    for path in SYSTEM:
        yield from (
            ("--symlink", str(Path(path).readlink()), path)
            if Path(path).is_symlink()
            else ("--ro-bind-try", path, path)
        )
    yield from ("--proc", "/proc", "--ro-bind-try", "/proc/sys", "/proc/sys", "--dev", "/dev")
    space = str(spec.limits.space_mib * _MIB)
    for path in ("/tmp", "/dev/shm"):  # noqa: S108 - mount points inside the sandbox
        yield from ("--perms", "1777", "--size", space, "--tmpfs", path)
    for path in (*ETC, *map(str, python_directories())):
        yield from (*_parents(path), "--ro-bind-try", path, path)
    if spec.gpu:
        yield from _gpu(spec.gpu)
    yield from _mounts(spec)
    yield from ("--remount-ro", "/dev", "--remount-ro", "/")


def _mounts(spec: SandboxSpec) -> Iterator[str]:
    """Show and hide what the spec names; a directory that hides becomes read-only once all mounts in it are made."""
    system = [path for path in map(Path, SYSTEM) if path.is_dir() and not path.is_symlink()]
    driver = [DRIVER.resolve()] if spec.gpu else []
    ordered = mounts(spec, [*system, *python_directories(), *driver])
    for mount in ordered:
        if mount.outside is None:
            yield from ("--perms", "0755", "--tmpfs", mount.inside)
        else:
            bind = "--bind" if mount.writable else "--ro-bind"
            yield from (*_parents(mount.inside), bind, str(mount.outside), mount.inside)
    for mount in ordered:
        if mount.outside is None:
            yield from ("--remount-ro", mount.inside)


def _gpu(uuid: str) -> Iterator[str]:
    """Show the devices of one GPU, where GPUs sit, a profiler, and a driver outside /usr.

    Every /proc has /proc/driver/nvidia.
    """
    for device in device_nodes(uuid):
        yield from ("--dev-bind", str(device), f"/dev/{device.name}")
    driver = DRIVER.resolve()
    outside = () if driver.is_relative_to("/usr") else (str(driver),)
    for path in (*outside, *GPU_TOPOLOGY, GPU_PROFILER):
        yield from (*_parents(path), "--ro-bind-try", path, path)


def _parents(path: str) -> Iterator[str]:
    """Make the directories above a mount point; bwrap would make them for root alone."""
    for parent in reversed(Path(path).parents):
        if str(parent) not in {"/", "/tmp"}:  # noqa: S108 - these exist
            yield from ("--perms", "0755", "--dir", str(parent))


def _environment(spec: SandboxSpec) -> Iterator[str]:
    yield "--clearenv"
    own = base_environment("/tmp", spec.gpu)  # noqa: S108
    libraries = [str(path) for path in DRIVER_LIBRARIES if path.is_dir()]
    if spec.gpu and libraries:
        own["LD_LIBRARY_PATH"] = ":".join(libraries)
    for name, value in (own | dict(spec.environment)).items():
        yield from ("--setenv", name, value)
    yield from ("--chdir", spec.directory)
