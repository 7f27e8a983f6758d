"""The sub-command ``export metr``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_json, add_task, print_json
from re_bench.task.profile_names import add_profile_option
from re_bench_metr import SANDBOXES

if TYPE_CHECKING:
    import argparse


def _options(parser: argparse.ArgumentParser) -> None:
    add_task(parser)
    parser.add_argument("directory", metavar="DIR", type=Path, help="the family's directory, named like the family")
    add_profile_option(parser)
    parser.add_argument(
        "--sandbox",
        choices=SANDBOXES,
        default=SANDBOXES[0],
        help="what submissions run in; 'user' is for containers that may make no namespaces (default: %(default)s)",
    )
    add_json(parser)


def _run(options: argparse.Namespace) -> int:
    from re_bench.task.discovery import find_task  # noqa: PLC0415 - not for --help
    from re_bench.task.profile_choice import profile_name  # noqa: PLC0415
    from re_bench_metr.export import export_metr  # noqa: PLC0415

    task = find_task(options.task)
    profile = profile_name(task, options.profile)
    export_metr(task, options.directory, profile, options.sandbox)
    if options.json:
        directory = str(options.directory)
        print_json({"task": task.name, "profile": profile, "format": "metr", "directory": directory})
    else:
        print(f"{options.directory}: {task.name}, profile {profile}, as a family of METR's Task Standard")
    return 0


EXPORTER = Command(
    "metr",
    "write a task as a family of METR's Task Standard",
    _options,
    _run,
    examples=("re-bench export metr triton_cumsum metr/triton_cumsum",),
)
