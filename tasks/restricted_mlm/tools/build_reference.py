"""Train a profile's reference: ``python tools/build_reference.py --profile cpu [--seed N] [--out DIR]``.

Only the weights of seed 0 are kept and scored. The weights for profile ``cpu`` are shipped in ``reference/``; the
weights for ``gpu`` are written to the cache, where ``re-bench workspace --with reference`` finds them. The record
``PROFILE.json``, next to the weights, contains the text, the recipe and, for each seed, the losses, the hardware and
the weights' SHA-256. ``reference/`` also contains the record of the measured ``gpu`` weights.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.data.provenance import versions
from re_bench.processes import cli_entry_point, print_progress
from re_bench.text import open_text
from restricted_mlm.build import DIRECTORY, RECIPES, SHIPPED, build, cached_directory, record_path
from restricted_mlm.profiles import PROFILES

if TYPE_CHECKING:
    from collections.abc import Sequence

SCORED = 0
"""The seed whose weights are kept."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, train the model, and write the weights and the record."""
    parser = argparse.ArgumentParser(description="Train a profile's reference.")
    parser.add_argument("--profile", choices=RECIPES, required=True)
    parser.add_argument(
        "--seed", type=int, default=SCORED, help="other seeds measure the spread; their weights are not kept"
    )
    parser.add_argument("--out", metavar="DIR", type=Path, help="output directory, instead of the default")
    options = parser.parse_args(arguments)
    with cli_entry_point("build_reference.py"):
        name, seed = options.profile, options.seed
        target = options.out or (DIRECTORY if name in SHIPPED else cached_directory(name))
        target.mkdir(parents=True, exist_ok=True)
        weights = target / (f"{name}.safetensors" if seed == SCORED else f"{name}-{seed}.safetensors")
        text = open_text(PROFILES[name].text)
        entry = build(name, text, seed, weights, print_progress)
        if seed != SCORED:
            weights.unlink()
        record = target / record_path(name).name
        made = {
            "profile": name,
            "text": {key: text.manifest[key] for key in ("name", "key", "files")},
            "recipe": asdict(RECIPES[name]),
        }
        before = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
        same = all(before.get(key) == value for key, value in made.items())
        entry |= {"date": dt.datetime.now(dt.UTC).date().isoformat(), "versions": versions()}
        made["seeds"] = {**(before["seeds"] if same else {}), str(seed): entry}
        record.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
