"""The sub-command ``export harbor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_hours, add_json, add_max_attempts, add_task, print_json
from re_bench.task.profile_names import add_profile_option

if TYPE_CHECKING:
    import argparse


def _options(parser: argparse.ArgumentParser) -> None:
    add_task(parser)
    parser.add_argument("directory", metavar="DIR", type=Path, help="a directory that does not exist yet")
    add_profile_option(parser)
    add_hours(parser)
    text = "what scores (default: re-bench/verifier-TASK:VERSION)"
    parser.add_argument("--verifier-image", metavar="IMAGE", help=text)
    text = "what submissions run in; 'none' protects nothing and is recorded in the score (default: bubblewrap)"
    parser.add_argument("--sandbox", choices=("bubblewrap", "none"), default="bubblewrap", help=text)
    add_max_attempts(parser, "once, at the end; with N there is a tool that scores N attempts on the way")
    text = "also write these cheats, or all of the profile, each as a task: DIR is then the directory of all"
    parser.add_argument("--cheats", metavar="NAME", nargs="*", help=text)
    add_json(parser)


def _run(options: argparse.Namespace) -> int:
    from re_bench.export import TaskFacts, digest_of  # noqa: PLC0415 - not for --help
    from re_bench.task.discovery import find_task  # noqa: PLC0415
    from re_bench.task.profile_choice import profile_name  # noqa: PLC0415
    from re_bench_harbor.config import HarborOptions  # noqa: PLC0415
    from re_bench_harbor.export import export_harbor  # noqa: PLC0415

    task = find_task(options.task)
    facts = TaskFacts(task, profile_name(task, options.profile))
    hours = {} if options.hours is None else {"hours": options.hours}
    chosen = HarborOptions(options.verifier_image, options.sandbox, options.max_attempts or 0, **hours)
    digests = {path: digest_of(path) for path in export_harbor(facts, options.directory, chosen, options.cheats)}
    if options.json:
        entries = [{"directory": str(path), "sha256": digest} for path, digest in digests.items()]
        print_json({"task": task.name, "profile": facts.profile_name, "format": "harbor", "directories": entries})
        return 0
    for path, digest in digests.items():
        print(f"{path}: {task.name}, profile {facts.profile_name}, SHA-256 {digest}")
    return 0


EXPORTER = Command(
    "harbor",
    "write a task as a directory of Harbor",
    _options,
    _run,
    examples=("re-bench export harbor triton_cumsum harbor/triton_cumsum --max-attempts 5",),
)
