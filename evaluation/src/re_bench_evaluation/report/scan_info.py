"""What ``re-bench scan`` has found in an evaluation, as the data of a report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from re_bench_evaluation.report.data import FindingInfo, ScanInfo
from re_bench_evaluation.report.findings import SEVERITIES, read_scan
from re_bench_evaluation.report.text import shortened, valid_unicode

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench_evaluation.report.findings import Finding

_MOST = 500
_LONGEST = 300
_LONGEST_EVIDENCE = 1000


def scan_info(directory: Path) -> ScanInfo | None:
    """Return the last scan of an evaluation; None if there is none. Its runs have names yet, and no keys.

    Raises:
        LogError: if the file is no plain file.
    """
    scan = read_scan(directory)
    if scan is None:
        return None
    ordered = sorted(scan.findings, key=lambda finding: -SEVERITIES.index(finding.severity))
    more = len(ordered) - _MOST
    return ScanInfo(
        time=valid_unicode(scan.time),
        checks=tuple(map(valid_unicode, scan.checks)),
        findings=tuple(map(_finding, ordered[:_MOST])),
        left_out=(*map(valid_unicode, scan.left_out), *([f"{more} findings are not shown"] if more > 0 else [])),
        judge=valid_unicode(str((scan.judge or {}).get("model", ""))),
    )


def with_keys(scan: ScanInfo, evaluation: str) -> ScanInfo:
    """Return a scan whose findings name runs by their keys in a report, as ``run_reader`` does."""
    return replace(
        scan,
        findings=tuple(
            finding if finding.run is None else replace(finding, run=f"{evaluation}/{finding.run}")
            for finding in scan.findings
        ),
    )


def _finding(finding: Finding) -> FindingInfo:
    evidence = "\n".join(f"{name}: {value}" for name, value in finding.evidence.items())
    return FindingInfo(
        check=valid_unicode(finding.check),
        severity=finding.severity,
        text=shortened(valid_unicode(finding.text), _LONGEST),
        run=None if finding.run is None else valid_unicode(finding.run),
        attempt=finding.attempt,
        evidence=shortened(valid_unicode(evidence), _LONGEST_EVIDENCE),
    )
