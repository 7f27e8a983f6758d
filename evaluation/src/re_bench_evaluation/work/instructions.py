"""What a person is told at the beginning: the task's instructions, the limits, and the commands."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from re_bench.errors import UsageError
from re_bench_evaluation.work.record import WORKSPACE

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench.task.discovery import Task
    from re_bench_evaluation.work.record import WorkRecord

FILE = "INSTRUCTIONS.md"
"""In the directory of a person's work."""


def instructions(task: Task, record: WorkRecord, directory: Path) -> str:
    """Return the text: what agents at a server are told, for a person at a terminal.

    Raises:
        UsageError: if the task has no instructions.
    """
    manifest, profile = task.manifest, task.profile(record.profile)
    try:
        text = (task.directory / "instructions.md").read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UsageError(f"{task.directory / 'instructions.md'}: it cannot be read: {error.strerror}") from None
    final = {"min": "lowest", "max": "highest", "last": "last valid"}[manifest.aggregation]
    shown = "its score" if manifest.show_score else "whether it is valid, but not its score"
    where = shlex.quote(str(directory))
    lines = [
        f"This is profile `{record.profile}`: {profile.description}."
        + (" Scores are modelled, not measured." if profile.modelled else ""),
        f"Your workspace is `{(directory / WORKSPACE).resolve()}`: it holds the files above, and is what you submit.",
        f"You have {record.hours:g} hours, counted from now. Afterwards nothing is scored any more.",
        "The clock stands still while you have paused, and while this machine sleeps or is off.",
        f"`re-bench work score {where}` scores a copy of your workspace as it is, up to {record.max_attempts} times.",
        f"You are told {shown}. The clock goes on while it is scored.",
        f"`re-bench work pause {where}` stops the clock, `resume` has it go on, `status` tells what is left.",
        f"`re-bench work finish {where}` scores once more, and ends the work with the {final} score.",
        "Nothing keeps you in a sandbox: use what the study that you take part in allows, and no other machine.",
    ]
    if manifest.model is not None:
        lines.append("Your own trials of the model go to a server and a key of yours; scorings have theirs.")
    if manifest.meter is not None:
        lines.append("Experiments are counted in your workspace alone: `RE_BENCH_EXPERIMENTS` is not set.")
    return f"{text}\n\n## Where you work\n\n" + "\n".join(f"- {line}" for line in lines) + "\n"
