"""The command ``scan``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from re_bench.cli.main import EVALUATORS, app
from re_bench.errors import UsageError
from re_bench.options import Flag, Json, print_json

if TYPE_CHECKING:
    from re_bench_evaluation.report.findings import Scan


@app.command(group=EVALUATORS)
def scan(
    path: Annotated[Path | None, Parameter(name="EVALUATION", help="An evaluation's directory.")] = None,
    /,
    *,
    list_: Annotated[Flag, Parameter(name="--list", help="List the checks.")] = False,
    check: Annotated[tuple[str, ...], Parameter(negative=(), help="Run this check; may be repeated.")] = (),
    json: Json = False,
) -> int:
    """Look over an evaluation for what a person should look at."""
    from re_bench.tables import table
    from re_bench_evaluation.scan import CHECKS
    from re_bench_evaluation.scan import scan as scan_evaluation

    if list_:
        print(table(("check", "looks for"), [(check.name, check.help) for check in CHECKS.values()]))
        return 0
    if path is None:
        raise UsageError("give an evaluation's directory, or --list")
    result = scan_evaluation(path, check)
    if json:
        print_json(asdict(result))
    else:
        _print(result, path)
    return 1 if result.left_out else 0


def _print(result: Scan, path: Path) -> None:
    from re_bench.tables import printable, table
    from re_bench_evaluation.report.findings import FILE

    rows = [
        (finding.severity, finding.check, printable(finding.run or "-"), printable(finding.text))
        for finding in result.findings
    ]
    if rows:
        print(table(("severity", "check", "run", "finding"), rows))
    for reason in result.left_out:
        print(f"not looked at: {printable(reason)}")
    print(f"{len(rows)} findings of the checks {', '.join(result.checks)}; they are leads, not verdicts: {path / FILE}")
