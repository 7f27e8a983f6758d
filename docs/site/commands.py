"""Write ``docs/commands.md`` from the parsers of ``re-bench``: ``python docs/site/commands.py``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.cli.main import all_commands, make_parser

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[1] / "commands.md"
_HEAD = """# Commands

Every command and its options, as `--help` shows them; written by `python docs/site/commands.py`, and a test compares.
The exit status is 0 where all is well, 1 after a failure of ours or for a task that does not hold, 2 for a request that
cannot be met here, and 3 for an invalid submission.
"""


def page() -> str:
    """Return the whole page."""
    parsers = list(_commands(make_parser(all_commands().values())))
    contents = "\n".join(
        f"- [`{parser.prog}`](#{_slug(parser.prog)}): {_sentence(parser).split('. ')[0].rstrip('.')}"
        for parser in parsers
    )
    return "\n".join([_HEAD, contents, *map(_section, parsers)])


def _commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers that do something: those without commands below them."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001
    for action in below:
        for child in dict.fromkeys(action.choices.values()):
            yield from _commands(child)
    if not below:
        yield parser


def _section(parser: argparse.ArgumentParser) -> str:
    lines = [f"\n## {parser.prog}\n", _sentence(parser)]
    for title, actions in _groups(parser):
        rows = [_row(parser, action) for action in actions if not _is_hidden(action)]
        if rows:
            lines += [f"\n{title}"] if title else []
            lines += ["", "| argument | meaning |", "| --- | --- |", *rows]
    return "\n".join(lines)


def _groups(parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[argparse.Action]]]:
    """Yield the arguments that belong together with their title; those of argparse's own two groups come first."""
    groups = {group.title: group._group_actions for group in parser._action_groups}  # noqa: SLF001
    yield "", [action for title in ("positional arguments", "options") for action in groups.pop(title, [])]
    yield from ((f"{str(title)[:1].upper()}{_cell(str(title))[1:]}", actions) for title, actions in groups.items())


def _row(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """Return an argument's row; what has to be given without being positional says so."""
    text = _cell(parser._get_formatter()._expand_help(action)) if action.help else ""  # noqa: SLF001
    needed = " (required)" if action.required and action.option_strings else ""
    return f"| `{_cell(_written(action))}` | {text}{needed} |"


def _written(action: argparse.Action) -> str:
    """Return an argument as one types it."""
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return names
    value: Any = action.metavar or (
        "|".join(map(str, action.choices)) if action.choices is not None else action.dest.upper()
    )
    shown = " ".join(value) if isinstance(value, tuple) else str(value)
    shown = {"?": f"[{shown}]", "*": f"[{shown} ...]", "+": f"{shown} ..."}.get(str(action.nargs), shown)
    return f"{names} {shown}".strip()


def _sentence(parser: argparse.ArgumentParser) -> str:
    return _cell(parser.description or "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-")


def _is_hidden(action: argparse.Action) -> bool:
    return action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction)  # noqa: SLF001


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
