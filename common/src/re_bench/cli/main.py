"""The ``re-bench`` command. Each subcommand imports what it needs when it runs, so that ``--help`` is quick."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from re_bench.cli import (
    bundle_command,
    check_command,
    doctor_command,
    evaluate_command,
    export_command,
    new_command,
    report_command,
    sandbox_command,
    scan_command,
    score_commands,
    task_commands,
    transcripts_command,
    validate_commands,
    view_command,
    work_command,
)
from re_bench.errors import UsageError
from re_bench.processes import cli_entry_point

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from re_bench.cli.command import Command

_GROUP = "re_bench.commands"
BUILT_IN = (
    *doctor_command.COMMANDS,
    *task_commands.COMMANDS,
    *new_command.COMMANDS,
    *check_command.COMMANDS,
    *score_commands.COMMANDS,
    *validate_commands.COMMANDS,
    *report_command.COMMANDS,
    *view_command.COMMANDS,
    *evaluate_command.COMMANDS,
    *work_command.COMMANDS,
    *sandbox_command.COMMANDS,
    *bundle_command.COMMANDS,
    *export_command.COMMANDS,
    *transcripts_command.COMMANDS,
    *scan_command.COMMANDS,
    *export_command.COMMANDS,
)
"""The commands of this distribution."""
_ELSEWHERE = {"serve": "environment", "sessions": "environment"}
"""Commands of the documentation that other distributions of the repository bring, by the distribution's folder."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0 done, 1 a failure, 2 a wrong request, 3 an invalid score.

    Raises:
        SystemExit: with the exit status, if something of ours fails or a signal ends us.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    with cli_entry_point("re-bench"):
        commands = all_commands()
        if words and words[0] in _ELSEWHERE.keys() - commands.keys():
            folder = _ELSEWHERE[words[0]]
            raise UsageError(
                f"the command {words[0]} is not installed; run: pip install -c constraints.txt -e common -e gateway "
                f"-e {folder}"
            )
        options = make_parser(commands.values()).parse_args(words)
        status: int = options.run(options)
    return status


def _installed() -> Iterator[Command]:
    """Yield the commands of other packages; one that cannot be imported counts as not installed."""
    for entry in sorted(entry_points(group=_GROUP), key=lambda entry: entry.name):
        with suppress(ImportError):
            yield entry.load()


def all_commands() -> dict[str, Command]:
    """Return the commands that are here by name: ours, and those of installed packages."""
    return {command.name: command for command in (*BUILT_IN, *_installed())}


def make_parser(commands: Iterable[Command]) -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(prog="re-bench", description="Research-engineering tasks and their scores.")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in commands:
        text = f"{command.help[0].upper()}{command.help[1:]}."
        subparser = subparsers.add_parser(command.name, help=command.help, description=text)
        subparser.set_defaults(run=command.run, built_in=BUILT_IN)
        command.add_options(subparser)
    return parser
