"""Train the intact models of a profile: ``python tools/build_models.py --profile cpu [--out DIR]``.

Those of profile ``cpu`` are shipped in the package, those of profile ``gpu`` are built into the cache. On one H200 that
it had not for itself, each profile took 200 to 260 s.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fix_embedding.build import build
from fix_embedding.intact_models import cached, shipped
from fix_embedding.profiles import PROFILES
from re_bench.data.cache import file_lock
from re_bench.processes import cli_entry_point

if TYPE_CHECKING:
    from collections.abc import Sequence

SHIPPED = ("cpu",)
"""Profiles whose models are part of the package."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and build."""
    trained = [name for name, profile in PROFILES.items() if not profile.large.published]
    parser = argparse.ArgumentParser(description="Train the intact models of a profile.")
    parser.add_argument("--profile", choices=trained, required=True)
    parser.add_argument("--out", metavar="DIR", type=Path, help="where to put them, if not in the usual place")
    options = parser.parse_args(arguments)
    with cli_entry_point("build_models.py"):
        out = options.out or (shipped(options.profile) if options.profile in SHIPPED else cached(options.profile))
        with file_lock(cached(options.profile).with_name(f".{options.profile}.lock")):
            build(options.profile, out.resolve(), lambda line: print(line, file=sys.stderr, flush=True))


if __name__ == "__main__":
    main()
