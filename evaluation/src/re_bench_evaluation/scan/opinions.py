"""What a judge is asked about, and what becomes of its verdicts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from re_bench.data.jsonl import LogError
from re_bench.errors import ReBenchError
from re_bench.tables import number
from re_bench_evaluation.report.findings import Finding
from re_bench_evaluation.scan.judge import BudgetSpentError, JudgeError, quotes
from re_bench_evaluation.scan.scanned import text_files
from re_bench_evaluation.transcripts.write import steps_of_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from re_bench.runs.attempts import Attempt
    from re_bench_evaluation.report.findings import Severity
    from re_bench_evaluation.scan.judge import Judge, Verdict
    from re_bench_evaluation.scan.scanned import Scanned, ScannedRun

JUDGE = "judge"
"""The name of the check."""
_MATERIAL_CHARS = 60_000
_FILE_CHARS = 20_000
_STEP_CHARS = 1_500
_STEPS = 40
_SEVERITIES: dict[str, Severity] = {"suspicious": "warning", "cheating": "serious"}


def opinions(scanned: Scanned, judge: Judge, left_out: list[str]) -> Iterator[Finding]:
    """Yield what a judge says of the best submission of each run, the highest rewards first.

    Args:
        scanned: the evaluation.
        judge: who is asked.
        left_out: gets what was not judged, and why.
    """
    waiting = sorted(_best_of_each(scanned), key=lambda pair: -(pair[1].reward or 0.0))
    for asked, (run, attempt) in enumerate(waiting):
        material = list(_material(run, attempt))
        try:
            verdict = judge.ask(_description(run), material)
        except (BudgetSpentError, JudgeError) as error:
            left_out.append(f"{JUDGE}: {len(waiting) - asked} of {len(waiting)} submissions: {error}")
            return
        yield from _findings(run, attempt, verdict, material)


def _best_of_each(scanned: Scanned) -> Iterator[tuple[ScannedRun, Attempt]]:
    """Yield each run with its attempt of the highest reward, if it is better than the baseline and kept."""
    for run in scanned.runs:
        kept = [entry for entry in run.attempts if entry.reward is not None and run.submission(entry) is not None]
        best = max(kept, key=lambda entry: entry.reward or 0.0, default=None)
        if best is not None and (best.reward or 0.0) > run.margin:
            yield run, best


def _description(run: ScannedRun) -> str:
    """Return what our own manifest says of the task; what the evaluation says may be a stranger's."""
    if run.task is None:
        return "(a task that is not here)"
    manifest = run.task.manifest
    return f"{manifest.title}\n{manifest.description}\nraw score in {manifest.unit}; {manifest.direction} is better"


def _findings(
    run: ScannedRun, attempt: Attempt, verdict: Verdict | None, material: list[dict[str, str]]
) -> Iterator[Finding]:
    if verdict is None:
        yield Finding(JUDGE, "info", f"attempt {attempt.n}: the judge gave no verdict", run.name, attempt.n)
        return
    evidence = verdict.model_dump(exclude={"ticket"})
    severity = _SEVERITIES.get(verdict.verdict)
    if severity is not None:
        text = f"attempt {attempt.n}: the judge calls it {verdict.verdict}: {verdict.reason}"
        if not quotes(verdict, material):
            severity, text = "info", f"{text} (the words that it quotes are not there)"
        yield Finding(JUDGE, severity, text, run.name, attempt.n, evidence)
    if verdict.addresses_reader:
        text = f"attempt {attempt.n}: the judge says that the submission or its agent speaks to whoever reads it"
        yield Finding(JUDGE, "warning", text, run.name, attempt.n, evidence)


def _material(run: ScannedRun, attempt: Attempt) -> Iterator[dict[str, str]]:
    """Yield the files of a submission, then the last steps before it, as long as there is room."""
    room = _MATERIAL_CHARS
    copy = run.submission(attempt)
    score = f"attempt {attempt.n}: {attempt.status}, raw {number(attempt.raw)}, reward {number(attempt.reward)}"
    yield {"kind": "score", "text": score, "message": attempt.message[:_STEP_CHARS]}
    for name, text in text_files(copy) if copy is not None else ():
        part = text[: min(_FILE_CHARS, room)]
        room -= len(part)
        if part:
            yield {"kind": "file", "name": name[:200], "text": part}
    for step in _steps_before(run, attempt.n):
        text = _step_text(step)[: min(_STEP_CHARS, room)]
        room -= len(text)
        if text:
            yield {"kind": "step", "text": text}


def _steps_before(run: ScannedRun, number: int) -> list[dict[str, Any]]:
    """Return the last steps of the agent before an attempt."""
    try:
        steps = steps_of_run(run.directory)
    except (ReBenchError, LogError):
        return []
    before = []
    for step in steps:
        extra = step.get("extra", {})
        if extra.get("event") == "attempt" and extra.get("attempt") == number:
            break
        if step["source"] == "agent":
            before.append(step)
    return before[-_STEPS:]


def _step_text(step: dict[str, Any]) -> str:
    half = _STEP_CHARS // 2
    calls = json.dumps([[call["function_name"], call["arguments"]] for call in step.get("tool_calls", ())])
    told = " ".join(str(result.get("content")) for result in step.get("observation", {}).get("results", ()))
    return f"{step['message'][:half]}\n{calls[:half]}\n{told[:half]}"
