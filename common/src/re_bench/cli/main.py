"""The ``re-bench`` command. Each subcommand imports what it needs when it runs, so that ``--help`` is quick."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from re_bench.cli import (
    check_command,
    compare_command,
    complete,
    doctor_command,
    export_command,
    new_command,
    sandbox_command,
    score_commands,
    task_commands,
    validate_commands,
)
from re_bench.cli.command import GROUPS, print_json
from re_bench.cli.parser import Parser, all_parsers
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
    *compare_command.COMMANDS,
    *sandbox_command.COMMANDS,
    *export_command.COMMANDS,
    *complete.COMMANDS,
)
"""The commands of this distribution."""
_ELSEWHERE = dict.fromkeys(("serve", "sessions"), "server") | dict.fromkeys(
    ("bundle", "evaluate", "report", "scan", "transcripts", "view", "work"), "evaluation"
)
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
                f"the command {words[0]} is not installed; run: pip install -c constraints.txt -e common -e {folder}"
            )
        parser = make_parser(commands.values())
        complete.complete(parser)
        options = parser.parse_args(words)
        if options.version:
            return _show_versions(as_json=options.version_as_json or getattr(options, "json", False))
        if options.version_as_json:
            parser.error("--json before a command goes with --version alone")
        if "run" not in options:
            parser.error("a command is missing; re-bench --help lists them")
        status: int = options.run(options)
    return status


def _show_versions(*, as_json: bool) -> int:
    from re_bench.cli.version import describe_versions, versions

    if as_json:
        print_json(versions())
    else:
        print(describe_versions())
    return 0


def _installed() -> Iterator[Command]:
    """Yield the commands of other packages; one that cannot be imported counts as not installed."""
    for entry in sorted(entry_points(group=_GROUP), key=lambda entry: entry.name):
        with suppress(ImportError):
            yield entry.load()


def all_commands() -> dict[str, Command]:
    """Return the commands that are here by name: ours, and those of installed packages."""
    return {command.name: command for command in (*BUILT_IN, *_installed())}


def make_parser(commands: Iterable[Command]) -> Parser:
    """Return the parser of the whole command line; what it returns has ``run``, unless it was asked for versions."""
    commands = tuple(commands)
    parser = _TopParser(
        prog="re-bench", usage="re-bench COMMAND ...", description="Research-engineering tasks and their scores."
    )
    parser.commands = commands
    parser.add_argument("--version", action="store_true", help="show the versions of all that is installed of re-bench")
    parser.add_argument("--json", dest="version_as_json", action="store_true", help="with --version: one JSON object")
    subparsers = parser.add_subparsers(metavar="COMMAND", prog="re-bench", parser_class=Parser)
    for command in commands:
        text = f"{command.help[0].upper()}{command.help[1:]}."
        subparser = subparsers.add_parser(command.name, help=command.help, description=text)
        subparser.examples = command.examples
        command.add_options(subparser)
        for inner in all_parsers(subparser):
            inner.set_defaults(run=command.run, parser=inner)
    return parser


class _TopParser(Parser):
    """The parser of the command, whose help has a list of commands for each kind of user."""

    commands: Sequence[Command] = ()

    def format_help(self) -> str:
        """Return the usage, the commands by user, and what else there is."""
        width = max(len(command.name) for command in self.commands)
        lines = [self.format_usage(), f"{self.description}", ""]
        for group in GROUPS:
            chosen = [command for command in self.commands if command.group == group]
            lines += [f"for {group}:", *(f"  {one.name:{width}}  {one.help}" for one in chosen), ""] if chosen else []
        lines += ["re-bench COMMAND --help shows the options and examples of a command,"]
        lines += ["re-bench --version [--json] the versions of all that is installed of re-bench.", ""]
        return "\n".join(lines)
