"""What a subcommand of ``re-bench`` is, and the options that several share.

Other packages add commands: an entry point in the group ``re_bench.commands`` names a :class:`Command`. Its module is
imported for every ``re-bench --help``, so it imports what its work needs only when it runs.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

SANDBOXES = ("bubblewrap", "container", "landlock", "user", "none")
"""Those of :mod:`re_bench.sandbox`, whose import would slow down ``--help``."""


@dataclass(frozen=True)
class Command:
    """One subcommand."""

    name: str
    help: str
    """What it does, in a line that begins with a lower-case verb."""
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    """Does the work and returns the exit status."""


def add_task(parser: argparse.ArgumentParser) -> None:
    """Add the argument ``TASK``."""
    parser.add_argument("task", metavar="TASK", help="a task's name or id, or its directory")


def add_sandbox(parser: argparse.ArgumentParser) -> None:
    """Add ``--sandbox``."""
    parser.add_argument("--sandbox", choices=SANDBOXES, help="'none' protects nothing and is recorded in the score")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add ``--ray`` and ``--gpu-type``: where jobs run, as :func:`re_bench.runs.pool.open_pool` takes it."""
    parser.add_argument(
        "--ray", metavar="ADDRESS", help="run on the Ray cluster of this address, or 'auto' on a node of one"
    )
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
