"""What is reported of a scored submission: the share of problems solved, a message, and details for the log."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from re_bench.scoring.score import Measured
from rust_codecontests.judge import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from re_bench_gateway import Usage
    from rust_codecontests.answers import Answer
    from rust_codecontests.profiles import ProfileSettings

ERRORS_KEPT = 10


def report(profile: ProfileSettings, answers: Sequence[Answer], verdicts: Sequence[Verdict], usage: Usage) -> Measured:
    """Return the score. Its message may reach the submission's author, so that it has counts and nothing else."""
    solved, problems = verdicts.count(Verdict.ACCEPTED), len(answers)
    raw = solved / problems
    error = math.sqrt(raw * (1 - raw) / problems)
    failures = Counter(answer.failure for answer in answers if answer.source is None)
    unsolved = Counter(str(verdict) for verdict in verdicts if verdict is not Verdict.ACCEPTED) + failures
    tokens = usage.prompt_tokens + usage.completion_tokens
    details: dict[str, Any] = {
        "solved": solved,
        "problems": problems,
        "standard_error": round(error, 6),
        "verdicts": dict(Counter(str(verdict) for verdict in verdicts)),
        "failures": dict(failures),
        "errors": [answer.text for answer in answers if answer.text][:ERRORS_KEPT],
        "model": profile.model,
        "usage": usage.model_dump(mode="json", exclude={"remaining"}),
    }
    message = (
        f"{profile.label}{solved} of {problems} problems solved, standard error {error:.3f}"
        + "".join(f"; {count} {reason}" for reason, count in unsolved.most_common())
        + f"; {usage.requests} calls, {tokens:,} tokens"
        + (f", ${usage.dollars:.2f}" if usage.dollars is not None else "")
        + (f"; {usage.refused} calls over the budget" if usage.refused else "")
    )
    return Measured(raw, message, details)
