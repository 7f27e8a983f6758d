"""The command ``scan``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from re_bench.cli.main import EVALUATORS, app
from re_bench.errors import UsageError
from re_bench.options import Flag, Json, Positive, print_json

if TYPE_CHECKING:
    from re_bench_evaluation.report.findings import Scan
    from re_bench_evaluation.scan.judge import JudgeSettings


def _check_url(_type: object, url: str | None) -> None:
    if url is not None and not url.startswith(("http://", "https://")):
        raise ValueError(f"expected an address that begins with http:// or https://, got {url!r}")


@app.command(group=EVALUATORS)
def scan(
    path: Annotated[Path | None, Parameter(name="EVALUATION", help="An evaluation's directory.")] = None,
    /,
    *,
    list_: Annotated[Flag, Parameter(name="--list", help="List the checks.")] = False,
    check: Annotated[tuple[str, ...], Parameter(negative=(), help="Run this check; may be repeated.")] = (),
    judge: Annotated[
        str | None, Parameter(validator=_check_url, help="Also ask a model, at this OpenAI-compatible server.")
    ] = None,
    judge_model: Annotated[str | None, Parameter(help="The judge's model.")] = None,
    judge_key_variable: Annotated[str | None, Parameter(help="The environment variable with the judge's key.")] = None,
    judge_calls: Annotated[Positive, Parameter(help="The most calls of the judge.")] = 50,
    judge_tokens: Annotated[Positive, Parameter(help="The most tokens of the judge.")] = 1_000_000,
    json: Json = False,
) -> int:
    """Look over an evaluation for what a person should look at."""
    from re_bench.tables import table
    from re_bench_evaluation.scan.checks import CHECKS
    from re_bench_evaluation.scan.run import scan as scan_evaluation

    if list_:
        print(table(("check", "looks for"), [(check.name, check.help) for check in CHECKS.values()]))
        return 0
    if path is None:
        raise UsageError("give an evaluation's directory, or --list")
    result = scan_evaluation(
        path, list(check), _judge(judge, judge_model, judge_key_variable, judge_calls, judge_tokens)
    )
    if json:
        print_json(asdict(result))
    else:
        _print(result, path)
    return 1 if result.left_out else 0


def _judge(
    url: str | None, model: str | None, key_variable: str | None, calls: int, tokens: int
) -> JudgeSettings | None:
    from re_bench_evaluation.scan.judge import JudgeSettings

    if (url is None) != (model is None) or (key_variable and url is None):
        raise UsageError("a judge needs both --judge URL and --judge-model NAME")
    if url is None or model is None:
        return None
    return JudgeSettings(url, model, key_variable, calls, tokens)


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
    if result.judge is not None:
        print("the judge: " + ", ".join(f"{name} {value}" for name, value in result.judge.items()))
    print(f"{len(rows)} findings of the checks {', '.join(result.checks)}; they are leads, not verdicts: {path / FILE}")
