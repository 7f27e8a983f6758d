"""Preparing small_scaling_law: the text as bytes, and an agent's workspace."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from re_bench.lm import gpt, training
from re_bench.text import batches
from small_scaling_law import profiles
from small_scaling_law.answer import FILE, KEYS
from small_scaling_law.bytes_text import FILES, open_bytes, prepare_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COPIED = {
    "gpt.py": gpt.__file__,
    "training.py": training.__file__,
    "batches.py": batches.__file__,
    "scales.py": profiles.__file__,
}
"""Modules of ours that an agent finds, by their names there; they import nothing else of ours."""


def prepare(profile: str, say: Callable[[str], None]) -> None:
    """Make the bytes of the profile's text, if it has experiments."""
    experiments = profiles.SCALES[profile].experiments
    if experiments is not None:
        prepare_bytes(experiments.text, say)


def lay_out(profile: str, target: Path) -> None:
    """Put text, modules, the profile's name and the starting answer into the workspace ``target``."""
    scale = profiles.SCALES[profile]
    if scale.experiments is not None:
        (target / "data").mkdir(exist_ok=True)
        source = open_bytes(scale.experiments.text)
        for name in FILES:
            shutil.copyfile(source / name, target / "data" / name)
    for name, module in COPIED.items():
        shutil.copyfile(module, target / name)
    for name, content in (
        ("profile.json", {"profile": profile}),
        (FILE, dict(zip(KEYS, scale.default, strict=True))),
    ):
        (target / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
