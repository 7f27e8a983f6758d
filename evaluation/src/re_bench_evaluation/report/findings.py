"""What ``re-bench scan`` has found in an evaluation: the file ``scan.jsonl`` in its directory.

Its first line says what was looked for; each further line is a finding: a lead for a person, and not a verdict. To
show them: ``scan = read_scan(directory)``, then ``scan.findings`` by ``run`` and ``attempt``. A check in ``checks``
without a finding has found nothing. Texts and evidence may be what submissions wrote.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from re_bench.data.files import replace_file
from re_bench.data.jsonl import read_objects

if TYPE_CHECKING:
    from collections.abc import Mapping
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
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """JSON values that a person can check, such as the line of a file."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The outcome of one scan; the next one replaces it."""

    time: str
    """ISO 8601 in UTC."""
    checks: tuple[str, ...]
    """The names of the checks that were run to their end."""
    findings: tuple[Finding, ...]
    left_out: tuple[str, ...] = ()
    """What could not be looked at, and why."""


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
    lines, torn = read_objects(directory / FILE)
    if not lines or lines[0].get("v") != 1:
        return None
    head, findings = lines[0], [_finding(line) for line in lines[1:]]
    damaged = torn + findings.count(None)
    note = (f"{damaged} lines of {FILE} are damaged",) if damaged else ()
    return Scan(
        str(head.get("time")),
        _texts(head.get("checks")),
        tuple(entry for entry in findings if entry is not None),
        (*_texts(head.get("left_out")), *note),
    )


def _texts(values: object) -> tuple[str, ...]:
    return tuple(map(str, values)) if isinstance(values, list) else ()


def _finding(line: dict[str, Any]) -> Finding | None:
    try:
        finding = Finding(**line)
    except TypeError:
        return None
    texts = isinstance(finding.check, str) and isinstance(finding.text, str)
    places = isinstance(finding.run, str | None) and isinstance(finding.attempt, int | None)
    whole = texts and places and finding.severity in SEVERITIES and isinstance(finding.evidence, dict)
    return finding if whole else None
