"""What is reported of a scored submission: the share of problems solved, a message, and details for the log."""

from __future__ import annotations

import math
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
"""From this share of the cores that others have, the log calls the machine overloaded."""


def report(
    label: str,
    answers: Sequence[Answer],
    judgements: Sequence[Judgement | None],
    usage: Usage,
    load: Mapping[str, float],
) -> RawScore:
    """Return the score.

    ``label`` begins the message, and says which model it was.

    Its message may reach the submission's author, who must learn nothing by it but the number of problems solved: every
    other figure is one that the submission can choose, with held-out statements before it. They are in the details.
    """
    verdicts = Counter(str(judgement.verdict) for judgement in judgements if judgement)
    solved, problems = verdicts[Verdict.ACCEPTED], len(answers)
    raw = solved / problems
    details: dict[str, Any] = {
        "solved": solved,
        "problems": problems,
        "standard_error": round(math.sqrt(raw * (1 - raw) / problems), 6),
        "verdicts": dict(verdicts),
        "failures": dict(Counter(answer.failure for answer in answers if answer.source is None)),
        "errors": [answer.text for answer in answers if answer.text][:ERRORS_KEPT],
        "cpu_s": round(sum(judgement.cpu_s for judgement in judgements if judgement), 3),
        "load": {**load, "overloaded": load["share_of_others"] >= OVERLOADED},
        "usage": usage.model_dump(mode="json", exclude={"remaining"}),
    }
    return RawScore(raw, f"{label}{solved} of {problems} problems solved", details)
