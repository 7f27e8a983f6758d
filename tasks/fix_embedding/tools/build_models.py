"""Train the intact models of a profile: ``python tools/build_models.py --profile cpu [--out DIR]``.

Those of profile ``cpu`` are shipped in the package, those of profile ``gpu`` are built into the cache. On one H200 that
it had not for itself, each profile took 200 to 260 s.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from fix_embedding.build import build
from fix_embedding.models import FILES, RECORD, cached_directory, shipped_directory
from fix_embedding.profiles import PROFILES
from re_bench.data.cache import file_lock, new_directory
from re_bench.data.files import sha256_of
from re_bench.processes import cli_entry_point, print_progress
from re_bench.text import open_text

if TYPE_CHECKING:
    from collections.abc import Sequence

SHIPPED = ("cpu",)
"""Profiles whose models are part of the package."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and build."""
    trained = [name for name, profile in PROFILES.items() if not profile.large.published]
    parser = argparse.ArgumentParser(description="Train the intact models of a profile.")
    parser.add_argument("--profile", choices=trained, required=True)
    parser.add_argument("--out", metavar="DIR", type=Path, help="where to put them, if not where they belong")
    options = parser.parse_args(arguments)
    with cli_entry_point("build_models.py"):
        name, cached = options.profile, cached_directory(options.profile)
        target = (options.out or (shipped_directory(name) if name in SHIPPED else cached)).resolve()
        text = open_text(PROFILES[name].text)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Models that are there are no reason not to train: that is what CacheEntry.prepare is for.
        with file_lock(cached.with_name(f".{cached.name}.lock")), new_directory(target) as directory:
            record = build(name, text, directory, print_progress)
            record["files"] = {file: sha256_of(directory / file) for file in FILES}
            (directory / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
