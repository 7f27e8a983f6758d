"""Make a submission's score: the share of problems solved, a message, and details for the log."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from typing import TYPE_CHECKING, Any

from re_bench.api import RawScore
from rust_codecontests.judge import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from re_bench_gateway import Usage
    from rust_codecontests.answers import Answer
    from rust_codecontests.judge import Judgement

ERRORS_KEPT = 10
OVERLOADED = 0.5
"""Minimum share of the cores used by others at which the log reports the machine as overloaded."""


def report(
    label: str,
    answers: Sequence[Answer],
    judgements: Sequence[Judgement | None],
    usage: Usage,
    load: Mapping[str, float],
    *,
    public: Sequence[bool],
) -> RawScore:
    """Return the public score, and a private score if some problems are not ``public``.

    The message consists of ``label``, which names the model, and the number of public problems solved. All other
    figures are only in the details, which the submission's author does not see: a submission that has seen held-out
    statements could encode them in these figures.
    """
    verdicts = Counter(str(judgement.verdict) for judgement in judgements if judgement)
    solved = [bool(judgement and judgement.verdict is Verdict.ACCEPTED) for judgement in judgements]
    shown = [right for right, is_public in zip(solved, public, strict=True) if is_public]
    hidden = [right for right, is_public in zip(solved, public, strict=True) if not is_public]
    final = statistics.mean(hidden or shown)
    details: dict[str, Any] = {
        "solved": sum(shown),
        "problems": len(shown),
        "private_solved": sum(hidden),
        "private_problems": len(hidden),
        "standard_error": round(math.sqrt(final * (1 - final) / len(hidden or shown)), 6),
        "verdicts": dict(verdicts),
        "failures": dict(Counter(answer.failure for answer in answers if answer.source is None)),
        "errors": [answer.text for answer in answers if answer.text][:ERRORS_KEPT],
        "cpu_s": round(sum(judgement.cpu_s for judgement in judgements if judgement), 3),
        "load": {**load, "overloaded": load["share_of_others"] >= OVERLOADED},
        "usage": usage.model_dump(mode="json", exclude={"remaining"}),
    }
    message = f"{label}{sum(shown)} of {len(shown)} problems solved"
    return RawScore(statistics.mean(shown), message, details, private=final if hidden else None)
