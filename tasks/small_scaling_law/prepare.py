"""Preparing small_scaling_law: the text as bytes, and an agent's workspace."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import scales
from answer import FILE, KEYS
from bytes_text import FILES, open_bytes, prepare_bytes

from re_bench.lm import gpt, training
from re_bench.text import batches

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
COPIED = (gpt.__file__, training.__file__, batches.__file__, scales.__file__)
"""Modules of ours that an agent finds as they are; they import nothing else of ours."""


def prepare(profile: str, say: Callable[[str], None]) -> None:
    """Make the bytes of the profile's text, if it has experiments."""
    experiments = scales.SCALES[profile].experiments
    if experiments is not None:
        prepare_bytes(experiments.text, say)


def lay_out(profile: str, target: Path) -> None:
    """Put text, modules, the profile's name and the starting answer into the workspace ``target``."""
    chosen = scales.SCALES[profile]
    if chosen.experiments is not None:
        (target / "data").mkdir(exist_ok=True)
        source = open_bytes(chosen.experiments.text)
        for name in FILES:
            shutil.copyfile(source / name, target / "data" / name)
    for module in COPIED:
        shutil.copyfile(module, target / Path(module).name)
    for name, content in (
        ("profile.json", {"profile": profile}),
        (FILE, dict(zip(KEYS, chosen.default, strict=True))),
    ):
        (target / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
