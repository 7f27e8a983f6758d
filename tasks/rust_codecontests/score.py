"""The scorer of rust_codecontests: raw = the share of held-out problems that the submission's programs solve.

The submission's module runs in a sandbox (``solving.py``) without network, and talks to the model through a metered
gateway. It is given statements and public tests, and hands over source texts. The judge compiles and runs them in
sandboxes of their own on all tests; the hidden ones are nowhere else.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dataset
from answers import Answer, answers
from judge import Judge, Limits, Verdict
from rules import MODELS, RULES, Rules

from re_bench.errors import InvalidSubmissionError, ReBenchError
from re_bench.scoring.score import Job, Measured, main
from re_bench_gateway import Settings, Usage, serving

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataset import Problem

HERE = Path(__file__).parent
ERRORS_KEPT = 10


def measure(job: Job) -> Measured:
    """Have the held-out problems solved, judge what comes, and count.

    Raises:
        InvalidSubmissionError: if the submission's module cannot be imported.
        UsageError: without problems, Rust, or a key for the model.
    """
    rules = RULES[job.profile_name]
    problems = dataset.read(job.profile_name, "test")
    with Judge(job.backend, rules.edition) as judge:
        try:
            given, usage = solved(job, rules, problems)
        except InvalidSubmissionError as fault:
            raise InvalidSubmissionError(rules.label + str(fault)) from None
        job.progress("judging")
        verdicts = judged(judge, problems, given)
    return counted(rules, given, verdicts, usage)


def solved(job: Job, rules: Rules, problems: Sequence[Problem]) -> tuple[list[Answer], Usage]:
    """Return the submission's answers, and what it has used of the model.

    Raises:
        ReBenchError: if the model's server answered no call at all.
    """
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="re-bench-calls-")))
        settings = Settings(upstream=rules.upstream(), models=MODELS, budget=rules.budget, log=place / "calls.jsonl")
        gateway = stack.enter_context(serving(settings))
        given = list(answers(job, rules, gateway, problems))
        usage = gateway.usage()
    if settings.upstream.kind == "openai" and usage.failed and not usage.requests:
        raise ReBenchError(
            f"the model's server answered none of {usage.failed} calls; are OPENAI_API_KEY and OPENAI_BASE_URL right?"
        )
    return given, usage


def judged(judge: Judge, problems: Sequence[Problem], given: Sequence[Answer]) -> list[Verdict]:
    """Return the verdicts on all programs that there are."""
    programs = [
        (answer.source, problem.tests, Limits(problem.time_limit_s, problem.memory_limit_mib), len(problem.public))
        for problem, answer in zip(problems, given, strict=True)
        if answer.source is not None
    ]
    return [judgement.verdict for judgement in judge.judge_all(programs)]


def counted(rules: Rules, given: Sequence[Answer], verdicts: Sequence[Verdict], usage: Usage) -> Measured:
    """Return the score. Its message may reach the submission's author, so that it has counts and nothing else."""
    right, number = verdicts.count(Verdict.ACCEPTED), len(given)
    raw = right / number
    error = math.sqrt(raw * (1 - raw) / number)
    failures = Counter(answer.failure for answer in given if answer.source is None)
    unsolved = Counter(str(verdict) for verdict in verdicts if verdict is not Verdict.ACCEPTED) + failures
    tokens = usage.prompt_tokens + usage.completion_tokens
    details: dict[str, Any] = {
        "solved": right,
        "problems": number,
        "standard_error": round(error, 6),
        "verdicts": dict(Counter(str(verdict) for verdict in verdicts)),
        "failures": dict(failures),
        "errors": [answer.text for answer in given if answer.text][:ERRORS_KEPT],
        "model": rules.model,
        "usage": usage.model_dump(mode="json", exclude={"remaining"}),
    }
    message = (
        f"{rules.label}{right} of {number} problems solved, standard error {error:.3f}"
        + "".join(f"; {count} {what}" for what, count in unsolved.most_common())
        + f"; {usage.requests} calls, {tokens:,} tokens"
        + (f", ${usage.dollars:.2f}" if usage.dollars is not None else "")
        + (f"; {usage.refused} calls over the budget" if usage.refused else "")
    )
    return Measured(raw, message, details)


if __name__ == "__main__":
    main(measure, HERE)
