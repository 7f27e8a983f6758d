"""The command ``export``: a sub-command for each format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from re_bench.cli.command import Command
from re_bench.cli.export_harbor import add_harbor
from re_bench.cli.export_metr import add_metr

if TYPE_CHECKING:
    import argparse

_FORMATS = (add_harbor, add_metr)


def _options(parser: argparse.ArgumentParser) -> None:
    subparsers = parser.add_subparsers(metavar="FORMAT", required=True)
    for add in _FORMATS:
        add(subparsers)


def _run(options: argparse.Namespace) -> int:
    status: int = options.export(options)
    return status


COMMANDS = (
    Command(
        "export",
        "write a task in a format that others run",
        _options,
        _run,
        examples=(
            "re-bench export harbor triton_cumsum harbor/triton_cumsum --max-attempts 5",
            "re-bench export metr triton_cumsum metr/triton_cumsum",
        ),
    ),
)
