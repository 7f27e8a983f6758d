"""The command ``report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_json, print_json
from re_bench_evaluation.cli.view_command import need_html

if TYPE_CHECKING:
    import argparse

    from re_bench_evaluation.report.data import ReportData


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        type=Path,
        help="an evaluation, a run of one, a server's state directory, an attempt log, what validate --json printed, "
        "or what an installed package reads",
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="write a self-contained HTML page")
    add_json(parser)


def _report(options: argparse.Namespace) -> int:
    from re_bench.tables import terminal_width
    from re_bench_evaluation.report.data import to_json
    from re_bench_evaluation.report.details import Room
    from re_bench_evaluation.report.read import read_report
    from re_bench_evaluation.report.terminal import as_text

    if options.out:
        need_html()
    data = read_report(options.paths, room=Room() if options.json or options.out else None)
    if options.out:
        _write(options.out, data)
    if options.json:
        print_json(to_json(data))
    elif not options.out:
        print(as_text(data, terminal_width()))
    unreadable = {problem.path for problem in data.problems} & {str(path) for path in options.paths}
    return 1 if unreadable else 0


def _write(page: Path, data: ReportData) -> None:
    from re_bench.processes import print_progress
    from re_bench_evaluation.report.page import write_page

    write_page(data, page)
    size = page.stat().st_size
    print_progress(f"{page}: {size:,} bytes, {len(data.runs)} runs, {len(data.problems)} problems")


COMMAND = Command(
    "report",
    "show results: tables, JSON, or a page",
    _options,
    _report,
    examples=("re-bench report evaluation/", "re-bench report evaluation/ --out report.html"),
)
