"""The command ``export metr``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import add_json, add_task, print_json
from re_bench.task.profile_names import add_profile_option

if TYPE_CHECKING:
    import argparse

_SANDBOXES = ("bubblewrap", "user")
"""Those of :mod:`re_bench.export.metr.write`, whose import would slow down ``--help``."""


def add_metr(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``metr`` to the formats of ``re-bench export``."""
    text = "a family of METR's Task Standard"
    parser = subparsers.add_parser("metr", help=text, description=f"Write a task as {text}.")
    add_task(parser)
    parser.add_argument("directory", metavar="DIR", type=Path, help="the family's directory, named like the family")
    add_profile_option(parser)
    parser.add_argument(
        "--sandbox",
        choices=_SANDBOXES,
        default=_SANDBOXES[0],
        help="what submissions run in; 'user' is for containers that may make no namespaces (default: %(default)s)",
    )
    add_json(parser)
    parser.set_defaults(export=_export)


def _export(options: argparse.Namespace) -> int:
    from re_bench.export.metr.write import export_metr
    from re_bench.task.choices import profile_name
    from re_bench.task.discovery import find_task

    task = find_task(options.task)
    profile = profile_name(task, options.profile)
    export_metr(task, options.directory, profile, options.sandbox)
    if options.json:
        directory = str(options.directory)
        print_json({"task": task.name, "profile": profile, "format": "metr", "directory": directory})
    else:
        print(f"{options.directory}: {task.name}, profile {profile}, as a family of METR's Task Standard")
    return 0
