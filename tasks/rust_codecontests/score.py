"""The scorer of rust_codecontests: raw = the share of held-out problems that the programs solve, higher is better.

The submission's module runs in a sandbox (``harness/solver.py``) without network, and talks to the model through a
metered gateway. It is given statements and public tests, and hands over source texts. The judge compiles and runs them
in sandboxes of their own on all tests; the hidden ones are nowhere else.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from re_bench.errors import InvalidSubmissionError
from re_bench.sandbox.deadline import counted_as_untrusted
from re_bench.scoring.score import Job, Measured, main
from rust_codecontests.answers import collect_answers
from rust_codecontests.grading import held_out_problems, judge_answers
from rust_codecontests.judge import Judge
from rust_codecontests.load_clock import LoadClock
from rust_codecontests.origins import keep_programs, refuse_foreign
from rust_codecontests.profiles import PROFILES, model_name
from rust_codecontests.report import report


def measure(job: Job) -> Measured:
    """Have the held-out problems solved, judge what comes, and count.

    Raises:
        InvalidSubmissionError: if the submission's module cannot be imported.
        UsageError: without problems, Rust, or a key for the model.
    """
    profile, clock = PROFILES[job.profile_name], LoadClock()
    deadline = time.monotonic() + job.profile.time_limit_s - profile.margin_s
    label = profile.label.format(model=model_name(job.task))
    problems = held_out_problems(job.profile_name)
    with Judge(job.backend, profile.edition) as judge:
        try:
            answers, usage, calls = collect_answers(job, profile, problems)
        except InvalidSubmissionError as fault:
            raise InvalidSubmissionError(label + str(fault)) from None
        job.progress("judging")
        keep_programs(job.records, problems, answers)
        with counted_as_untrusted():
            answers = refuse_foreign(answers, calls, judge, deadline)
        judgements = judge_answers(judge, problems, answers, deadline)
    measured = report(label, answers, judgements, usage, clock.load())
    return replace(measured, details={**measured.details, "answered_as": sorted({call.model for call in calls})})


if __name__ == "__main__":
    main(measure, Path(__file__).parent)
