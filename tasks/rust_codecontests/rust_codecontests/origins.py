"""Record a submission's programs for the operator, and reject programs that the model did not write."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rust_codecontests.answers import NOT_THE_MODELS
from rust_codecontests.provenance import EDITED_SHARE, Provenance
from rust_codecontests.rust_tokens import read_program

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rust_codecontests.answers import Answer
    from rust_codecontests.dataset import Problem
    from rust_codecontests.judge import Judge
    from rust_codecontests.model_calls import ModelCall


def keep_programs(records: Path, problems: Sequence[Problem], answers: Sequence[Answer]) -> None:
    """Write ``programs.jsonl``: for each problem, the program or the reason why there is none."""
    with (records / "programs.jsonl").open("w", encoding="utf-8") as file:
        for problem, answer in zip(problems, answers, strict=True):
            line = {"problem": problem.name, "source": answer.source, "failure": answer.failure, "text": answer.text}
            file.write(json.dumps(line) + "\n")


def refuse_foreign(
    answers: Sequence[Answer], calls: Sequence[ModelCall], judge: Judge, deadline: float = math.inf
) -> list[Answer]:
    """Return the answers, with a failure in place of each program that the model did not write in one of ``calls``.

    The other programs are returned as the text that was compared. Edited programs that are not checked by
    ``deadline`` (``time.monotonic``) are rejected.
    """
    sources = {place: answer.source for place, answer in enumerate(answers) if answer.source is not None}
    origins = dict(zip(sources, Provenance(calls).origins(list(sources.values())), strict=True))
    edits_left = int(EDITED_SHARE * len(answers))
    checked = [_as_compared(answer) for answer in answers]
    for place, origin in origins.items():
        edits_left -= bool(origin.unedited)
        needed = (
            not any(time.monotonic() > deadline or judge.compiles(source) for source in way) for way in origin.unedited
        )
        if not (origin.is_model and (not origin.unedited or (edits_left >= 0 and any(needed)))):
            checked[place] = replace(answers[place], source=None, failure=NOT_THE_MODELS)
    return checked


def _as_compared(answer: Answer) -> Answer:
    """Reduce an answer's program to the text that was compared, so that nothing else is compiled."""
    return answer if answer.source is None else replace(answer, source=read_program(answer.source).source())
