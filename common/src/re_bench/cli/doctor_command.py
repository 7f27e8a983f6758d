"""The command ``doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_json, add_sandbox, print_json
from re_bench.task.profile_names import add_profile_option

if TYPE_CHECKING:
    import argparse

_MARKS = {"ok": "ok", "note": "--", "problem": "FAIL"}


def _doctor_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tasks", metavar="TASK", nargs="*", help="names, ids or directories; all tasks if none is given"
    )
    parser.add_argument("--online", action="store_true", help="ask the servers that data comes from in any case")
    add_profile_option(parser)
    add_sandbox(parser)
    add_json(parser)


def _doctor(options: argparse.Namespace) -> int:
    from re_bench.doctor import choose_targets, examine, reasons
    from re_bench.tables import printable
    from re_bench.task.discovery import find_task, find_tasks

    named = [find_task(name) for name in options.tasks]
    tasks = named or [task for task in find_tasks().values() if task.scorer.is_file()]
    targets, lacking = choose_targets(tasks, options.profile)
    findings = [*lacking, *examine(targets, options.sandbox, network=options.online or None)]
    passed = not any(finding.status == "problem" for finding in findings)
    if options.json:
        print_json({"holds": passed, "checks": [finding.to_dict() for finding in findings]})
        return 0 if passed else 1
    width = max(len(finding.check) for finding in findings)
    for finding in findings:
        print(f"{_MARKS[finding.status]:<4}  {finding.check:<{width}}  {printable(finding.found)}")
        if finding.remedy and finding.status != "ok":
            print(f"{'':<{width + 8}}{finding.remedy}")
    if blocked := reasons(findings):
        print(f"cannot run here: {', '.join(blocked)}")
    elif passed:
        print("every task asked for can run here")
    else:
        print("no task is blocked, but a line marked FAIL may stop one later")
    return 0 if passed else 1


COMMANDS = (
    Command(
        "doctor",
        "check prerequisites and print the commands that install them",
        _doctor_options,
        _doctor,
        group="everybody",
        examples=("re-bench doctor", "re-bench doctor triton_cumsum --profile gpu"),
    ),
)
