"""What the stand-in model knows of this task's problems: their statements and pools of correct and flawed programs.

The gateway makes the model from here, by :func:`answer`; for sessions of agents of the splits that they have. Nothing
of it is for sandboxes.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError
from rust_codecontests.stand_in.model import StandIn
from rust_codecontests.stand_in.problems import Problem, Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from re_bench.api import StandIn as StandInModel

CANARY = "re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training"
"""A line of every file of a problem, which nobody is shown who is to solve it."""

PROBLEMS = Path(__file__).parent / "problems"
SHOWN = ("train", "valid")
"""The splits that agents get whole."""
SPLITS = (*SHOWN, "test", "test2")
VERDICTS = {
    "wa": "wrong answer",
    "tle": "time limit",
    "mle": "memory limit",
    "re": "runtime error",
    "ce": "compile error",
}
"""The verdict on a wrong program by the first word of its file's name."""


def directories(splits: Sequence[str] = SPLITS, problems: Path = PROBLEMS) -> list[Path]:
    """Return the directories of the problems of some splits, in order."""
    return [path.parent for split in splits for path in sorted((problems / split).glob("*/problem.toml"))]


def read(directory: Path) -> Problem:
    """Read what the stand-in model knows of the problem in a directory.

    Raises:
        ReBenchError: if the directory is not as tasks/rust_codecontests/README.md says.
    """
    try:
        difficulty = tomllib.loads((directory / "problem.toml").read_text())["difficulty"]
        correct = [Program(source(path), "accepted") for path in sorted((directory / "correct").glob("*.rs"))]
        wrong = [
            Program(source(path), VERDICTS[path.stem.split("_")[0]])
            for path in sorted((directory / "wrong").glob("*.rs"))
        ]
        return Problem(statement(directory), difficulty, (*correct, *wrong))
    except (OSError, ValueError, KeyError) as error:
        raise ReBenchError(
            f"{directory}: no problem for the stand-in model ({type(error).__name__}: {error})"
        ) from error


def statement(directory: Path) -> str:
    """Return the statement of the problem in a directory, without the canary in its first line."""
    return (directory / "statement.md").read_text().removeprefix(f"<!-- {CANARY} -->").lstrip()


def answer(seed: int = 0, secret: int = 0, splits: Sequence[str] = SPLITS) -> StandInModel:
    """Return the stand-in model of some splits, as the gateway calls it."""
    return StandIn([read(directory) for directory in directories(splits)], seed=seed, secret=secret).answer


def source(path: Path) -> str:
    """Return a program without what is written on top of it for maintainers: its flaw, a canary."""
    lines = path.read_text().splitlines()
    while lines and (not lines[0].strip() or lines[0].startswith("// Flaw:") or "canary" in lines[0]):
        del lines[0]
    return "\n".join(lines) + "\n"
