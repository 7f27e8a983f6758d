"""The spec of a sandbox, and what a backend is: it turns a spec and a program into a command line."""

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
    """The backend cannot isolate a program on this machine; the text says why and what to install."""


@dataclass(frozen=True)
class SandboxSpec:
    """What an untrusted program sees and may use. Everything not named here is out of its reach."""

    read_only: Mapping[str, Path] = field(default_factory=dict)
    """Path inside the sandbox to the file or directory outside that is shown there."""
    writable: Mapping[str, Path] = field(default_factory=dict)
    """The same, for directories that the program may change."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables, on top of the backend's own small set."""
    directory: str = "/tmp"  # noqa: S108 - the sandbox's private /tmp
    """Working directory inside the sandbox."""
    first: bool = False
    """Whether the program is the first process of its namespace, which no signal of another one inside stops or ends,
    and which has to wait for orphans. The backends ``landlock`` and ``none`` have no such namespace."""
    limits: Limits = field(default_factory=Limits)
    gpu: str | None = None
    """UUID (``GPU-…``) of the one NVIDIA GPU that the program may use; all others are out of its reach."""
    hidden: Sequence[Path] = ()
    """Directories outside that stay empty inside, wherever a shown one would show them. What ``read_only`` and
    ``writable`` name, even within one of them, is shown all the same. The backend ``none`` hides nothing."""
    host_network: bool = False
    """Whether the program shares the machine's network: its addresses, its loopback and its abstract Unix sockets."""
    user: int | None = None
    """The user id that root's bubblewrap hands over to, for programs that come back to what others have written; None
    for one that nobody has had. Other backends, and an ordinary user's, have one id for all programs."""

    def __post_init__(self) -> None:
        """Check that ``gpu`` names one GPU: an engine would take ``all`` too.

        Raises:
            UsageError: if it does not.
        """
        if self.gpu is not None and not is_gpu_uuid(self.gpu):
            raise UsageError(f"{self.gpu!r} is not the UUID of a GPU; expected GPU-… as `nvidia-smi -L` shows it")


@dataclass(frozen=True)
class Launch:
    """How to start a program in a sandbox, and how to be sure that nothing of it remains."""

    command: Sequence[str]
    """The command line, limits included."""
    descriptors: Sequence[int] = ()
    """File descriptors that the command inherits; they are closed once it has started."""
    cleanup: Callable[[], None] = lambda: None
    """Called once after the command has ended, whatever the reason; it may be called for a program long gone."""
    first: Callable[[], int | None] | None = None
    """Returns the id of a process that has all of the program's below it, or None if it is not there yet; None where
    the command has."""
    environment: Mapping[str, str] | None = None
    """The environment of the command itself, where a program inside could read it; None for all of ours."""
    end: Callable[[subprocess.Popen[bytes]], None] | None = None
    """Ends the command with all that it has started; None for :func:`re_bench.sandbox.process.end_process`."""
    user: int | None = None
    """The id of a user of the program's own, whose processes we need not be allowed to look into."""
    own: Sequence[Path] = ()
    """Directories of the program's own on disk, which together may hold :attr:`Limits.space_mib`."""


class Backend(Protocol):
    """A way to run a program without trusting it."""

    sessions: bool
    """Whether an agent's sessions can run in it, not only scorings."""
    sockets: bool
    """Whether a program inside can connect to a Unix socket that its spec shows."""

    @property
    def name(self) -> str:
        """What every score records of it."""
        ...

    @property
    def python(self) -> str:
        """The Python interpreter inside: a path, or a name to be found on the ``PATH`` there."""
        ...

    def probe(self) -> None:
        """Check that a program can be isolated here.

        Raises:
            SandboxUnavailableError: if not, with the reason and the remedy.
        """
        ...

    def launch(self, program: Sequence[str], spec: SandboxSpec) -> Launch:
        """Return how to start ``program`` in the sandbox that ``spec`` describes."""
        ...


def python_directories() -> list[Path]:
    """Return the directories that this interpreter runs from: its environment and its base installation."""
    prefixes = dict.fromkeys(map(Path, (sys.base_prefix, sys.prefix)))
    return [path for path in prefixes if not path.is_relative_to("/usr")]


def is_gpu_uuid(text: str) -> bool:
    """Tell whether ``text`` is the UUID of a whole GPU, ``GPU-…`` as nvidia-smi writes it."""
    return _GPU_UUID.fullmatch(text) is not None


def base_environment(home: str, gpu: str | None = None) -> dict[str, str]:
    """Return the environment every sandboxed program starts with, and CUDA's choice of the ``gpu``; nothing secret."""
    kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    search = [str(Path(sys.prefix) / "bin"), "/usr/local/bin", "/usr/bin", "/bin"]
    chosen = {"CUDA_VISIBLE_DEVICES": gpu} if gpu else {}
    return {"PATH": ":".join(search), "HOME": home, "USER": "agent", "LANG": "C.UTF-8", **kept, **chosen}
