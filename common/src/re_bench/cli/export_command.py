"""The command ``export``: a sub-command for each format that an installed distribution brings."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from re_bench.cli.command import Command
from re_bench.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

_GROUP = "re_bench.exporters"


def _exporters() -> Iterator[Command]:
    """Yield the formats; one that cannot be imported counts as not installed."""
    for entry in sorted(entry_points(group=_GROUP), key=lambda entry: entry.name):
        with suppress(ImportError):
            yield entry.load()


_FORMATS = tuple(_exporters())


def _options(parser: argparse.ArgumentParser) -> None:
    subparsers = parser.add_subparsers(metavar="FORMAT", required=bool(_FORMATS))
    for one in _FORMATS:
        text = f"{one.help[0].upper()}{one.help[1:]}."
        subparser = subparsers.add_parser(one.name, help=one.help, description=text)
        one.add_options(subparser)
        subparser.set_defaults(export=one.run)


def _run(options: argparse.Namespace) -> int:
    if "export" not in options:
        raise UsageError(f"no format is installed; install a distribution with an entry point of the group {_GROUP}")
    status: int = options.export(options)
    return status


COMMANDS = (
    Command(
        "export",
        "write a task in a format that others run",
        _options,
        _run,
        examples=tuple(line for one in _FORMATS for line in one.examples),
    ),
)
