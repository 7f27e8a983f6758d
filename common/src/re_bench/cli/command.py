"""What a subcommand of ``re-bench`` is, and the options that several share.

Other packages add commands: an entry point in the group ``re_bench.commands`` names a :class:`Command`. Its module is
imported for every ``re-bench --help``, so it imports what its work needs only when it runs.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from re_bench.sandbox import BACKENDS

if TYPE_CHECKING:
    from collections.abc import Callable

_LAST_PORT = 65535


Group = Literal["everybody", "task authors", "benchmark maintainers", "evaluators"]
GROUPS: tuple[Group, ...] = get_args(Group)
"""The users, in the order of the help."""


@dataclass(frozen=True)
class Command:
    """One subcommand."""

    name: str
    help: str
    """What it does, in a line that begins with a lower-case verb."""
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    """Does the work and returns the exit status."""
    group: Group = "evaluators"
    """Whom it is for, by which ``re-bench --help`` is ordered."""
    examples: tuple[str, ...] = ()
    """Command lines that a newcomer can begin with, for the end of its help."""


def add_task(parser: argparse.ArgumentParser) -> None:
    """Add the argument ``TASK``."""
    parser.add_argument("task", metavar="TASK", help="a task's name or id, or its directory")


def add_sandbox(parser: argparse.ArgumentParser) -> None:
    """Add ``--sandbox``."""
    parser.add_argument(
        "--sandbox",
        choices=BACKENDS,
        help="what submissions run in; 'none' protects nothing and is recorded in the score",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_fix(parser: argparse.ArgumentParser) -> None:
    """Add ``--fix``."""
    parser.add_argument("--fix", action="store_true", help="mend what a program can, and say what was mended")


def add_ray(parser: argparse.ArgumentParser) -> None:
    """Add ``--ray``."""
    text = "run on the Ray cluster of this address, or 'auto' on a node of one"
    parser.add_argument("--ray", metavar="ADDRESS", help=text)


def add_jobs(parser: argparse._ActionsContainer, default: str) -> argparse.Action:
    """Add ``--jobs``, whose default is this text; return the argument."""
    return parser.add_argument("--jobs", metavar="N", type=positive, help=f"how many at a time (default: {default})")


def add_hours(parser: argparse._ActionsContainer) -> None:
    """Add ``--hours``, which is None if it is not given."""
    parser.add_argument("--hours", metavar="H", type=above_zero, help="hours to work in (default: 8)")


def add_max_attempts(parser: argparse._ActionsContainer, default: str = "100") -> argparse.Action:
    """Add ``--max-attempts``, which is None if it is not given; return the argument."""
    text = f"how often a submission is scored (default: {default})"
    return parser.add_argument("--max-attempts", metavar="N", type=positive, help=text)


def add_port(parser: argparse._ActionsContainer, default: int) -> None:
    """Add ``--port``."""
    text = f"to listen at; 0: a free one (default: {default})"
    parser.add_argument("--port", metavar="N", type=_port, default=default, help=text)


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add ``--ray`` and ``--gpu-type``: where jobs run, as :func:`re_bench.runs.pool.open_pool` takes it."""
    add_ray(parser)
    parser.add_argument(
        "--gpu-type", metavar="TYPE", help="run what needs a GPU on those of this type alone, such as H200"
    )


def positive(text: str) -> int:
    """Return a positive whole number of a command line.

    Raises:
        ArgumentTypeError: if it is none.
    """
    value = int(text) if text.isascii() and text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a positive whole number, got {text!r}")
    return value


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _LAST_PORT):
        raise argparse.ArgumentTypeError(f"expected a port from 0 to {_LAST_PORT}, got {text!r}")
    return int(text)


def above_zero(text: str) -> float:
    """Return a positive number of a command line.

    Raises:
        ArgumentTypeError: if it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text!r}")
    return value


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on a line."""
    print(json.dumps(value, allow_nan=False))
