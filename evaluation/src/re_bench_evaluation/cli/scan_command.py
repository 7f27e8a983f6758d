"""The command ``scan``."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_json, positive, print_json
from re_bench.cli.parser import add_old_name

if TYPE_CHECKING:
    from re_bench_evaluation.report.findings import Scan
    from re_bench_evaluation.scan.judge import JudgeSettings


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="EVALUATION", type=Path, nargs="?", help="an evaluation's directory")
    parser.add_argument("--list", action="store_true", help="show the checks that there are")
    parser.add_argument("--check", metavar="NAME", action="append", default=[], help="run this check; may be repeated")
    parser.add_argument("--judge", metavar="URL", type=_url, help="also ask a model, at this OpenAI-compatible server")
    model = parser.add_argument("--judge-model", metavar="NAME", help="the judge's model")
    add_old_name(parser, "--model", model)
    text = "the environment variable with the judge's key"
    key = parser.add_argument("--judge-key-variable", metavar="NAME", help=text)
    add_old_name(parser, "--key-variable", key)
    parser.add_argument(
        "--judge-calls", metavar="N", type=positive, default=50, help="the most calls of the judge (default: 50)"
    )
    parser.add_argument(
        "--judge-tokens", metavar="N", type=positive, default=1_000_000, help="the most tokens (default: 1000000)"
    )
    add_json(parser)


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f"expected an address that begins with http:// or https://, got {text!r}")
    return text


def _run(options: argparse.Namespace) -> int:
    from re_bench.errors import UsageError
    from re_bench.tables import table
    from re_bench_evaluation.scan.checks import CHECKS
    from re_bench_evaluation.scan.run import scan

    if options.list:
        print(table(("check", "looks for"), [(check.name, check.help) for check in CHECKS.values()]))
        return 0
    if options.path is None:
        raise UsageError("give an evaluation's directory, or --list")
    result = scan(options.path, options.check, _judge(options))
    if options.json:
        print_json(asdict(result))
    else:
        _print(result, options.path)
    return 1 if result.left_out else 0


def _judge(options: argparse.Namespace) -> JudgeSettings | None:
    from re_bench.errors import UsageError
    from re_bench_evaluation.scan.judge import JudgeSettings

    if (options.judge is None) != (options.judge_model is None) or (
        options.judge_key_variable and options.judge is None
    ):
        raise UsageError("a judge needs both --judge URL and --judge-model NAME")
    if options.judge is None:
        return None
    return JudgeSettings(
        options.judge, options.judge_model, options.judge_key_variable, options.judge_calls, options.judge_tokens
    )


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


COMMAND = Command(
    "scan",
    "look over an evaluation for what a person should look at",
    _options,
    _run,
    examples=("re-bench scan evaluation/", "re-bench scan --list"),
)
