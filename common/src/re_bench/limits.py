"""How much an untrusted program may use, and how large a submission may be.

The manifest has both as tables, ``[profiles.NAME.limits]`` and ``[staging]``. Only the standard library is imported
here, since sandboxes are also used where pydantic is not installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PYDANTIC_CONFIG = {"extra": "forbid", "allow_inf_nan": False}


class _Positive:
    """Tells pydantic that a number, given as a number, must be above 0."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Mapping[str, Any]]) -> dict[str, Any]:
        return {**handler(source), "strict": True, "gt": 0}


_Seconds = Annotated[float, _Positive()]
_Count = Annotated[int, _Positive()]


@dataclass(frozen=True)
class Limits:
    """Upper bounds for one sandboxed program and all its descendants."""

    __pydantic_config__: ClassVar = _PYDANTIC_CONFIG

    wall_s: _Seconds = 120.0
    """Wall-clock seconds from start to end."""
    cpu_s: _Count = 600
    """CPU seconds of each process."""
    memory_mib: _Count = 4096
    """Memory of the whole process tree, in MiB, files apart; also what ``/tmp`` and ``/dev/shm`` may each
    hold, unless ``tmp_mib`` says otherwise."""
    processes: _Count = 256
    """Processes and threads at a time."""
    file_mib: _Count = 1024
    """Largest file that may be written, in MiB."""
    disk_mib: _Count = 8192
    """How much the writable directories together may grow, in MiB; every file counts for 4 KiB at least."""
    open_files: _Count = 1024
    """Open file descriptors of each process."""
    output_kib: _Count = 64
    """How much of stdout, and of stderr, is kept: the first and the last half; the rest is counted."""
    tmp_mib: _Count | None = None
    """What ``/tmp`` and ``/dev/shm`` may each hold, in MiB; None for as much as ``memory_mib``."""

    @property
    def space_mib(self) -> int:
        """What ``/tmp`` and ``/dev/shm`` may each hold, in MiB."""
        return self.memory_mib if self.tmp_mib is None else self.tmp_mib


@dataclass(frozen=True)
class Bounds:
    """What of a submission is copied, and how large that may be."""

    __pydantic_config__: ClassVar = _PYDANTIC_CONFIG

    names: tuple[str, ...] | None = None
    """Files and directories at the submission's top: these alone are copied, or all but those after a ``!``."""
    mib: _Count = 1024
    """All files together, in MiB (2^20 bytes)."""
    entries: _Count = 10_000
    """Files, directories and links."""
    depth: _Count = 24
    """Directories inside each other."""

    def include(self, name: str) -> bool:
        """Tell whether what has this name at the submission's top is copied."""
        names = self.names or ()
        excluding = all(entry.startswith("!") for entry in names)
        return f"!{name}" not in names if excluding else name in names
