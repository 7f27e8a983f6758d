"""What is mounted over what in a sandbox: the deepest path decides, whether it shows or hides."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from re_bench.sandbox.spec import SandboxSpec


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
