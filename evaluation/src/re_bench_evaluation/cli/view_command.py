"""The command ``view``: the page of a report from a server on this machine."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_port
from re_bench.errors import UsageError

if TYPE_CHECKING:
    import argparse


def need_html() -> None:
    """Do nothing where pages can be made.

    Raises:
        UsageError: if a package for them is missing.
    """
    missing = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if missing:
        raise UsageError(f"no {' and no '.join(missing)}; run: pip install -c constraints.txt -e 'evaluation[report]'")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path, help="what re-bench report takes")
    add_port(parser, default=0)


def _view(options: argparse.Namespace) -> int:
    from re_bench_evaluation.report.details import Room
    from re_bench_evaluation.report.read import read_report

    need_html()
    from re_bench_evaluation.report.view import view

    view(lambda: read_report(options.paths, room=Room()), options.port)
    return 0


COMMAND = Command(
    "view",
    "show a report in a browser, and read it again while runs are active",
    _options,
    _view,
    examples=("re-bench view evaluation/",),
)
