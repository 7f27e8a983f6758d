"""Data that an operator has mounted: it comes before the user's caches, as elsewhere in this kind of environment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import MutableMapping

__all__ = ["MOUNTED", "use_mounted"]

MOUNTED = Path("/orwd_data")
"""Where hosts of environments mount large data, read-only."""

_PLACES = {"RE_BENCH_CACHE": "re-bench", "HF_HOME": "huggingface"}


def use_mounted(environment: MutableMapping[str, str], mounted: Path = MOUNTED) -> list[Path]:
    """Set the variables that say where prepared data and the hub's lie, unless they are set; return what is used."""
    used = []
    for name, directory in _PLACES.items():
        place = mounted / directory
        if not environment.get(name) and place.is_dir():
            environment[name] = str(place)
            used.append(place)
    return used
