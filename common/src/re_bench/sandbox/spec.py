"""Describe a sandbox, and define the backends that turn a description and a program into a command line."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from re_bench.errors import UsageError
from re_bench.limits import Limits

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping, Sequence

_KEPT_ENVIRONMENT = ("LANG", "LC_ALL", "TZ")
_GPU_UUID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class SandboxUnavailableError(UsageError):
    """The backend cannot isolate a program on this machine; the message says why and what to install."""


@dataclass(frozen=True)
class SandboxSpec:
    """The files, devices and limits of an untrusted program. It can reach nothing else."""

    read_only: Mapping[str, Path] = field(default_factory=dict)
    """Path inside the sandbox to a file or directory outside, mounted read-only."""
    writable: Mapping[str, Path] = field(default_factory=dict)
    """Path inside the sandbox to a directory outside, mounted writable."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables in addition to the backend's."""
    directory: str = "/tmp"  # noqa: S108 - the sandbox's private /tmp
    """Working directory inside the sandbox."""
    as_pid1: bool = False
    """Whether the program is PID 1 of its namespace: signals from inside cannot stop or end it, and it must reap
    orphans. The backends ``landlock`` and ``none`` have no PID namespace."""
    limits: Limits = field(default_factory=Limits)
    gpu: str | None = None
    """UUID (``GPU-…``) of the only NVIDIA GPU that the program may use."""
    hidden: Sequence[Path] = ()
    """Directories outside that appear empty inside, except for paths in ``read_only`` and ``writable``. The backend
    ``none`` hides nothing."""
    host_network: bool = False
    """Whether the program shares the machine's network: its addresses, its loopback and its abstract Unix sockets."""
    user: int | None = None
    """UID that root's bubblewrap drops to, for programs that share files with earlier ones; None allocates a fresh
    one. Other backends, and bubblewrap of an ordinary user, run all programs under one UID."""

    def __post_init__(self) -> None:
        """Check that ``gpu`` names one GPU, since container engines also accept ``all``.

        Raises:
            UsageError: if it does not.
        """
        if self.gpu is not None and not is_gpu_uuid(self.gpu):
            raise UsageError(f"{self.gpu!r} is not the UUID of a GPU; expected GPU-… as `nvidia-smi -L` shows it")


@dataclass(frozen=True)
class Launch:
    """How to start a sandboxed program, and how to remove all of it afterwards."""

    command: Sequence[str]
    """The command line, limits included."""
    descriptors: Sequence[int] = ()
    """File descriptors that the command inherits; the caller closes them after the start."""
    cleanup: Callable[[], None] = lambda: None
    """Called once after the command has ended for any reason, perhaps long after the program."""
    ancestor_pid: Callable[[], int | None] | None = None
    """Returns the PID of the common ancestor of the program's processes, or None if it does not exist yet. Without
    this function, the command itself is the ancestor."""
    environment: Mapping[str, str] | None = None
    """The environment of the command itself, which programs inside may be able to read; None inherits."""
    end: Callable[[subprocess.Popen[bytes]], None] | None = None
    """Ends the command and its descendants; None for :func:`re_bench.sandbox.process.end_process`."""
    user: int | None = None
    """The program's own UID, whose processes this process may not be allowed to inspect."""
    own: Sequence[Path] = ()
    """Private directories of the program on disk, which together may hold :attr:`Limits.space_mib`."""


class Backend(Protocol):
    """A way to run untrusted programs."""

    sessions: bool
    """Whether it supports agents' sessions, not only scorings."""
    sockets: bool
    """Whether programs inside can connect to Unix sockets listed in their spec."""
    inherits: bool
    """Whether programs inside inherit open file descriptors of this process."""
    mounts: bool
    """Whether a path in a spec is visible inside even if its parent directories outside are private."""

    @property
    def name(self) -> str:
        """The name that scores record."""
        ...

    @property
    def python(self) -> str:
        """The Python interpreter inside: a path, or a command on the ``PATH`` there."""
        ...

    def probe(self) -> None:
        """Check that this machine can isolate a program.

        Raises:
            SandboxUnavailableError: if it cannot, with the reason and the remedy.
        """
        ...

    def launch(self, program: Sequence[str], spec: SandboxSpec) -> Launch:
        """Return how to start ``program`` in a sandbox."""
        ...


def python_directories() -> list[Path]:
    """Return this interpreter's environment and base installation, except within ``/usr``."""
    prefixes = dict.fromkeys(map(Path, (sys.base_prefix, sys.prefix)))
    return [path for path in prefixes if not path.is_relative_to("/usr")]


def is_gpu_uuid(text: str) -> bool:
    """Return whether ``text`` is the UUID of a whole GPU, ``GPU-…`` as in nvidia-smi."""
    return _GPU_UUID.fullmatch(text) is not None


def base_environment(home: str, gpu: str | None = None) -> dict[str, str]:
    """Return the environment variables of every sandboxed program; ``gpu`` sets ``CUDA_VISIBLE_DEVICES``."""
    kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    search = [str(Path(sys.prefix) / "bin"), "/usr/local/bin", "/usr/bin", "/bin"]
    chosen = {"CUDA_VISIBLE_DEVICES": gpu} if gpu else {}
    return {"PATH": ":".join(search), "HOME": home, "USER": "agent", "LANG": "C.UTF-8", **kept, **chosen}
