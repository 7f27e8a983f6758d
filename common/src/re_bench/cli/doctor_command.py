"""The command ``doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_fix, add_json, add_sandbox, print_json
from re_bench.task.profile_names import add_profile_option

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from re_bench.runs.doctor.finding import Finding

_MARKS = {"ok": "ok", "note": "--", "problem": "FAIL"}


def _doctor_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tasks", metavar="TASK", nargs="*", help="names, ids or directories; all tasks if none is given"
    )
    add_fix(parser)
    parser.add_argument("--online", action="store_true", help="ask the servers that data comes from in any case")
    add_profile_option(parser)
    add_sandbox(parser)
    add_json(parser)


def _doctor(options: argparse.Namespace) -> int:
    from re_bench.processes import print_progress
    from re_bench.runs.doctor.examine import choose_targets, examine
    from re_bench.runs.doctor.mend import mend
    from re_bench.task.discovery import find_task, find_tasks

    named = [find_task(name) for name in options.tasks]
    tasks = named or [task for task in find_tasks().values() if task.scorer.is_file()]
    targets, lacking = choose_targets(tasks, options.profile)

    def look() -> list[Finding]:
        return [*lacking, *examine(targets, options.sandbox, network=options.online or None)]

    findings, failed = look(), []
    if options.fix and any(finding.fix for finding in findings):
        failed = mend(findings, print_progress)
        findings = look()
    holds = not failed and not any(finding.status == "problem" for finding in findings)
    if options.json:
        print_json({"holds": holds, "checks": [finding.to_dict() for finding in findings], "not_mended": failed})
    else:
        _show(findings, failed, holds=holds)
    return 0 if holds else 1


def _show(findings: Sequence[Finding], failed: Sequence[str], *, holds: bool) -> None:
    from re_bench.runs.doctor.finding import reasons
    from re_bench.tables import printable

    width = max(len(finding.check) for finding in findings)
    for finding in findings:
        print(f"{_MARKS[finding.status]:<4}  {finding.check:<{width}}  {printable(finding.found)}")
        if finding.remedy and finding.status != "ok":
            print(f"{'':<{width + 8}}{finding.remedy}")
    for line in failed:
        print(f"not mended: {printable(line)}")
    blocked = reasons(findings)
    if blocked:
        print(f"cannot run here: {', '.join(blocked)}")
    elif holds:
        print("every task asked for can run here")
    else:
        print("no task is ruled out, but what is marked FAIL may stop one later")


COMMANDS = (
    Command(
        "doctor",
        "say what this machine lacks for the tasks, and what to type",
        _doctor_options,
        _doctor,
        group="everybody",
        examples=("re-bench doctor", "sudo .nox/shared/bin/re-bench doctor --fix"),
    ),
)
