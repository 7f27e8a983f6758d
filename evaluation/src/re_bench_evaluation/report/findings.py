"""What ``re-bench scan`` has found in an evaluation: the file ``scan.jsonl`` in its directory.

Its first line says what was looked for; each further line is a finding: a lead for a person, and not a verdict. To
show them: ``scan = read_scan(directory)``, then ``scan.findings`` by ``run`` and ``attempt``. A check in ``checks``
without a finding has found nothing. Texts and evidence may be what submissions wrote.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import TypeAdapter, ValidationError

from re_bench.data.files import replace_file
from re_bench.data.jsonl import read_objects
from re_bench_evaluation.report.text import plain_json

if TYPE_CHECKING:
    from pathlib import Path

FILE = "scan.jsonl"
Severity = Literal["info", "warning", "serious"]
"""``info``: worth knowing. ``warning``: has innocent explanations. ``serious``: look at this before you publish."""
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a check has found."""

    check: str
    """The name of the check."""
    severity: Severity
    text: str
    """What it is, in a line."""
    run: str | None = None
    """The run's name; None for what concerns several, which ``evidence`` names."""
    attempt: int | None = None
    """The attempt's number in its run."""
    evidence: dict[str, Any] = field(default_factory=dict)
    """JSON values that a person can check, such as the line of a file."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The outcome of one scan; the next one replaces it."""

    time: str
    """ISO 8601 in UTC."""
    checks: tuple[str, ...]
    """The names of the checks that were run to their end."""
    findings: tuple[Finding, ...] = ()
    """The most serious first."""
    left_out: tuple[str, ...] = ()
    """What could not be looked at, and why."""


_HEAD, _FINDING = TypeAdapter(Scan), TypeAdapter(Finding)


def write_scan(directory: Path, scan: Scan) -> None:
    """Write ``scan.jsonl`` into an evaluation's directory, in the place of an earlier one.

    Raises:
        OSError: if it cannot be written.
    """
    head = {"v": 1, "time": scan.time, "checks": scan.checks, "left_out": scan.left_out}
    lines = [head, *map(asdict, scan.findings)]
    text = "".join(json.dumps(line, ensure_ascii=True, allow_nan=False, sort_keys=True) + "\n" for line in lines)
    replace_file(directory / FILE, text.encode("ascii"))


def read_scan(directory: Path) -> Scan | None:
    """Return the last scan of an evaluation; None if there is none, or the file is of another format.

    A line that is no finding is left out, with a word in ``left_out``.

    Raises:
        LogError: if the file is no plain file.
    """
    lines, damaged = read_objects(directory / FILE)
    try:
        head, *rest = map(plain_json, lines)
        scan = _HEAD.validate_python(head)
    except ValueError:
        return None
    findings = []
    for line in rest:
        try:
            findings.append(_FINDING.validate_python(line))
        except ValidationError:
            damaged += 1
    findings.sort(key=lambda finding: -SEVERITIES.index(finding.severity))
    note = (f"{damaged} lines of {FILE} are damaged",) if damaged else ()
    return replace(scan, findings=tuple(findings), left_out=(*scan.left_out, *note))
