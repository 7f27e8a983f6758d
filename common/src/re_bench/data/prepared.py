"""Which tasks have been prepared, as far as the cache of prepared data tells without a task's own program.

Preparing notes the entries of the cache that it made or found. What was noted may have gone since; nothing here
compares checksums, which opening does.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from re_bench.data.cache import cache_directory, used_entries

if TYPE_CHECKING:
    from pathlib import Path


def note_prepared(task: str, profile: str, version: int) -> None:
    """Note that this process has prepared a task, by all entries that it has used; not in a cache that is read-only."""
    cache = cache_directory().resolve()
    entries = [path.relative_to(cache) if path.is_relative_to(cache) else path for path in used_entries()]
    text = json.dumps({"version": version, "entries": sorted(map(str, entries))}) + "\n"
    with suppress(OSError):
        file = _file(task, profile)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def is_prepared(task: str, profile: str, version: int) -> bool:
    """Tell whether this version of a task was prepared and all that it used is still there."""
    try:
        noted = json.loads(_file(task, profile).read_text(encoding="utf-8"))
        return noted["version"] == version and all((cache_directory() / path).is_dir() for path in noted["entries"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _file(task: str, profile: str) -> Path:
    return cache_directory() / "prepared" / f"{task}-{profile}.json"
