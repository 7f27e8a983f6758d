"""The parser of the command line: help that names examples, and errors that suggest what was meant."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NoReturn

from re_bench.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Parser(argparse.ArgumentParser):
    """A parser whose errors about unknown commands, options and choices say which known one is like it."""

    examples: Sequence[str] = ()
    """Command lines, for the end of the help."""

    def format_help(self) -> str:
        """Return the help, with the examples at its end."""
        text = super().format_help()
        return f"{text}\nexamples:\n" + "".join(f"  {line}\n" for line in self.examples) if self.examples else text

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:  # the base class overloads it
        """Parse all words, or end with the status 2."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            parser: Parser = getattr(options, "parser", self)  # of the sub-command, whose options may be meant
            parser.refuse(unknown)
        return options

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """End with the status 2 and a message about words that are no arguments."""
        hints = [did_you_mean(word.partition("=")[0], self.option_names()) for word in unknown if word.startswith("-")]
        self.error(f"unrecognized arguments: {' '.join(unknown)}{''.join(dict.fromkeys(hints))}")

    def option_names(self) -> list[str]:
        """Return the long options, without those that are only kept for older programs."""
        return [
            name
            for action in self._actions
            if action.help != argparse.SUPPRESS
            for name in action.option_strings
            if name.startswith("--")
        ]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            hint = did_you_mean(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{error.message}{hint}") from None


def subparsers_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of sub-commands by name; none of a parser without."""
    found = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001
    return dict(next((action.choices for action in found), {}))


def all_parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and those of all that is below it."""
    yield parser
    for inner in subparsers_of(parser).values():
        yield from all_parsers(inner)


def add_old_name(parser: argparse._ActionsContainer, old: str, new: argparse.Action) -> None:
    """Have an option also answer to a name that it had before, which the help does not show."""
    kinds: dict[str, Any] = {"action": "append"} if isinstance(new, argparse._AppendAction) else {}  # noqa: SLF001
    kinds |= {"type": new.type} if new.type else {}
    parser.add_argument(
        old,
        dest=new.dest,
        choices=new.choices,
        metavar=new.metavar,
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS,
        **kinds,
    )
