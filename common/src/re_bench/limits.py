"""How much an untrusted program may use, and how large a submission may be."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bounds", "Limits"]


@dataclass(frozen=True)
class Limits:
    """Upper bounds for one sandboxed program and all its descendants."""

    wall_s: float = 120.0
    """Wall-clock seconds from start to end."""
    cpu_s: int = 600
    """CPU seconds of each process."""
    memory_mib: int = 4096
    """Memory of the whole process tree, in MiB, files apart; also what ``/tmp`` and ``/dev/shm`` may each
    hold, unless ``tmp_mib`` says otherwise."""
    processes: int = 256
    """Processes and threads at a time."""
    file_mib: int = 1024
    """Largest file that may be written, in MiB."""
    disk_mib: int = 8192
    """How much the writable directories together may grow, in MiB; every file counts for 4 KiB at least."""
    open_files: int = 1024
    """Open file descriptors of each process."""
    output_kib: int = 64
    """How much of stdout, and of stderr, is kept: the first and the last half; the rest is counted."""
    tmp_mib: int | None = None
    """What ``/tmp`` and ``/dev/shm`` may each hold, in MiB; None for as much as ``memory_mib``."""

    @property
    def space_mib(self) -> int:
        """What ``/tmp`` and ``/dev/shm`` may each hold, in MiB."""
        return self.memory_mib if self.tmp_mib is None else self.tmp_mib


@dataclass(frozen=True)
class Bounds:
    """What of a submission is copied, and how large that may be."""

    names: tuple[str, ...] | None = None
    """Files and directories at the submission's top: these alone are copied, or all but those after a ``!``."""
    mib: int = 1024
    """All files together, in MiB (2^20 bytes)."""
    entries: int = 10_000
    """Files, directories and links."""
    depth: int = 24
    """Directories inside each other."""

    def include(self, name: str) -> bool:
        """Tell whether what has this name at the submission's top is copied."""
        names = self.names or ()
        excluding = all(each.startswith("!") for each in names)
        return f"!{name}" not in names if excluding else name in names
