"""Preparing small_scaling_law: the text as bytes, and an agent's workspace, of the chosen instance."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from re_bench.data.instances import chosen_instance
from re_bench.errors import UsageError
from re_bench.lm import GPT_FILE, TRAINING_FILE
from re_bench.text import batches
from small_scaling_law import profiles
from small_scaling_law.answer import FILE, KEYS
from small_scaling_law.bytes_text import FILES, open_bytes, prepare_bytes, text_of
from small_scaling_law.grading import open_truth
from small_scaling_law.instances import scale_of

if TYPE_CHECKING:
    from collections.abc import Callable

TASK = "small_scaling_law"
COPIED = {
    "gpt.py": GPT_FILE,
    "training.py": TRAINING_FILE,
    "batches.py": Path(batches.__file__),
    "scales.py": Path(profiles.__file__),
}
"""Modules of ours that an agent finds, by their names there; they import nothing else of ours."""


def prepare(profile: str, say: Callable[[str], None]) -> None:
    """Prepare for the chosen instance; see :func:`prepare_instance`."""
    prepare_instance(profile, chosen_instance(TASK, profile), say)


def prepare_instance(profile: str, instance: int, say: Callable[[str], None]) -> None:
    """Make the bytes of the profile's text, if it has experiments.

    Raises:
        UsageError: if there is no such instance, or nobody has made its truth here.
    """
    try:
        scale = scale_of(profile, instance)
    except ValueError as error:
        raise UsageError(f"{TASK}: {error}") from None
    if instance:
        say(f"instance {instance} of profile {profile}: {open_truth(profile, instance).name}")
    if scale.experiments is not None:
        prepare_bytes(scale.experiments.text, say)


def lay_out(profile: str, target: Path, instance: int | None = None) -> None:
    """Put text, modules, sizes and the starting answer of an instance, the chosen one if None, into ``target``."""
    instance = chosen_instance(TASK, profile) if instance is None else instance
    scale = scale_of(profile, instance)
    if scale.experiments is not None:
        (target / "data").mkdir(exist_ok=True)
        source = open_bytes(scale.experiments.text)
        for name in FILES:
            text = text_of(np.fromfile(source / name, np.uint8), scale.experiments, instance, Path(name).stem)
            text.tofile(target / "data" / name)
    for name, module in COPIED.items():
        shutil.copyfile(module, target / name)
    for name, content in (
        ("profile.json", {"profile": profile, "instance": instance, "scale": asdict(scale)}),
        (FILE, dict(zip(KEYS, scale.default, strict=True))),
    ):
        (target / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
