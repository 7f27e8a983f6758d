"""One scan of an evaluation: the chosen checks, then the judge, and ``scan.jsonl``."""

from __future__ import annotations

import datetime as dt
import importlib.util
from dataclasses import asdict
from typing import TYPE_CHECKING

from re_bench.errors import UsageError, did_you_mean
from re_bench.processes import print_progress
from re_bench.records import EvaluationRecord
from re_bench_evaluation.report.findings import SEVERITIES, Scan, write_scan
from re_bench_evaluation.scan.checks import CHECKS
from re_bench_evaluation.scan.judge import Judge
from re_bench_evaluation.scan.opinions import JUDGE, opinions
from re_bench_evaluation.scan.scanned import read_evaluation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from re_bench_evaluation.report.findings import Finding
    from re_bench_evaluation.scan.judge import JudgeSettings


def scan(directory: Path, checks: Sequence[str] = (), judge: JudgeSettings | None = None) -> Scan:
    """Run checks over an evaluation and write what they have found into its directory.

    Args:
        directory: the evaluation's.
        checks: their names; all that can be run here if there are none.
        judge: a model to ask as well.

    Raises:
        UsageError: if it is no evaluation, a check is unknown or needs what is not installed, or the directory cannot
            be written.
        ReBenchError: if the evaluation's record is damaged.
    """
    if not (directory / EvaluationRecord.file_name()).is_file():
        raise UsageError(f"{directory}: there is no {EvaluationRecord.file_name()}; give an evaluation's directory")
    unknown = [name for name in checks if name not in CHECKS]
    if unknown:
        raise UsageError(
            f"there is no check {unknown[0]!r}; there are: {', '.join(CHECKS)}{did_you_mean(unknown[0], CHECKS)}"
        )
    asked = Judge(judge) if judge is not None else None
    scanned = read_evaluation(directory)
    left_out, ran = list(scanned.left_out), []
    findings: list[Finding] = []
    for name in checks or CHECKS:
        if not checks and name == "kernels" and importlib.util.find_spec("kernelguard") is None:
            continue
        print_progress(f"scan: {name}")
        findings += CHECKS[name].run(scanned)
        ran.append(name)
    if asked is not None:
        print_progress(f"scan: {JUDGE}")
        before = len(left_out)
        findings += opinions(scanned, asked, left_out)
        ran += [JUDGE] if len(left_out) == before else []
    use = {"url": asked.settings.url, "model": asked.settings.model, **asdict(asked.use)} if asked is not None else None
    time = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    ordered = sorted(findings, key=lambda finding: -SEVERITIES.index(finding.severity))
    result = Scan(time, tuple(ran), tuple(ordered), tuple(left_out), use)
    try:
        write_scan(directory, result)
    except OSError as error:
        raise UsageError(f"{directory}: the findings cannot be written there: {error.strerror}") from None
    return result
