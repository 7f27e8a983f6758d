"""The sub-command ``export harbor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import add_hours, add_json, add_max_attempts, add_task, print_json
from re_bench.cli.parser import add_old_name
from re_bench.task.profile_names import add_profile_option

if TYPE_CHECKING:
    import argparse

_HOURS = 8.0


def add_harbor(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command to those of ``export``."""
    text = "write a task as a directory of Harbor"
    parser = subparsers.add_parser("harbor", help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.set_defaults(export=_run)
    add_task(parser)
    parser.add_argument("directory", metavar="DIR", type=Path, help="a directory that does not exist yet")
    add_profile_option(parser)
    add_hours(parser)
    parser.add_argument(
        "--verifier-image", metavar="IMAGE", help="what scores (default: re-bench/verifier-TASK:VERSION)"
    )
    text = "what submissions run in; 'none' protects nothing and is recorded in the score (default: bubblewrap)"
    sandbox = parser.add_argument("--sandbox", choices=("bubblewrap", "none"), default="bubblewrap", help=text)
    add_old_name(parser, "--verifier-sandbox", sandbox)
    attempts = add_max_attempts(parser, "once, at the end; with N there is a tool that scores N attempts on the way")
    add_old_name(parser, "--attempts", attempts)
    parser.add_argument(
        "--cheats",
        metavar="NAME",
        nargs="*",
        help="also write these cheats, or all of the profile, each as a task: DIR is then the directory of all",
    )
    add_json(parser)


def _run(options: argparse.Namespace) -> int:
    from re_bench.export.files import digest_of
    from re_bench.export.harbor import export_harbor
    from re_bench.export.harbor_config import HarborOptions
    from re_bench.export.task_facts import TaskFacts
    from re_bench.task.choices import profile_name
    from re_bench.task.discovery import find_task

    task = find_task(options.task)
    facts = TaskFacts(task, profile_name(task, options.profile))
    task.profile(facts.profile_name)
    chosen = HarborOptions(options.hours or _HOURS, options.verifier_image, options.sandbox, options.max_attempts or 0)
    written = export_harbor(facts, options.directory, chosen, options.cheats)
    digests = {str(directory): digest_of(directory) for directory in written}
    if options.json:
        entries = [{"directory": directory, "sha256": digest} for directory, digest in digests.items()]
        print_json({"task": task.name, "profile": facts.profile_name, "format": "harbor", "directories": entries})
    for directory, digest in {} if options.json else digests.items():
        print(f"{directory}: {task.name}, profile {facts.profile_name}, SHA-256 {digest}")
    return 0
