"""The commands ``report`` and ``view``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from re_bench.cli.main import EVALUATORS, app
from re_bench.errors import UsageError
from re_bench.options import Json, Port, print_json

if TYPE_CHECKING:
    from re_bench_evaluation.report.data import ReportData


Paths = Annotated[
    list[Path],
    Parameter(
        name="PATH",
        negative=(),
        help="An evaluation, a run of one, a server's state directory, an attempt log, the output of validate --json, "
        "or what an installed package reads.",
    ),
]


@app.command(group=EVALUATORS)
def report(
    paths: Paths,
    /,
    *,
    out: Annotated[Path | None, Parameter(help="Write a self-contained HTML page.")] = None,
    json: Json = False,
) -> int:
    """Show results: tables, JSON, or a page."""
    from re_bench.tables import terminal_width
    from re_bench_evaluation.report.data import to_json
    from re_bench_evaluation.report.details import Room
    from re_bench_evaluation.report.read import read_report
    from re_bench_evaluation.report.terminal import as_text

    if out:
        _need_html()
    data = read_report(paths, room=Room() if json or out else None)
    if out:
        _write(out, data)
    if json:
        print_json(to_json(data))
    elif not out:
        print(as_text(data, terminal_width()))
    unreadable = {problem.path for problem in data.problems} & {str(path) for path in paths}
    return 1 if unreadable else 0


@app.command(group=EVALUATORS)
def view(paths: Paths, /, *, port: Port = 0) -> int:
    """Show a report in a browser, and read it again while runs are active."""
    from re_bench_evaluation.report.details import Room
    from re_bench_evaluation.report.read import read_report

    _need_html()
    from re_bench_evaluation.report.view import view as serve

    serve(lambda: read_report(paths, room=Room()), port)
    return 0


def _need_html() -> None:
    """Raise UsageError if a package for pages is missing."""
    missing = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if missing:
        raise UsageError(f"no {' and no '.join(missing)}; run: pip install -c constraints.txt -e 'evaluation[report]'")


def _write(page: Path, data: ReportData) -> None:
    from re_bench.processes import print_progress
    from re_bench_evaluation.report.page import write_page

    write_page(data, page)
    size = page.stat().st_size
    print_progress(f"{page}: {size:,} bytes, {len(data.runs)} runs, {len(data.problems)} problems")
