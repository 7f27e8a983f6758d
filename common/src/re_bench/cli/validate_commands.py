"""The commands for maintainers of tasks: ``validate`` and ``calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_json, add_sandbox, add_task, positive, print_json
from re_bench.task.chat_model import ChatModel, add_model_options
from re_bench.task.profile_names import add_profile_option

if TYPE_CHECKING:
    import argparse


def _validate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tasks", metavar="TASK", nargs="*", help="names, ids or directories; all tasks if none is given"
    )
    parser.add_argument("--solution", metavar="DIR", type=Path, help="score this submission beside ours")
    parser.add_argument(
        "--repeats",
        type=positive,
        metavar="N",
        help="scorings of baseline and reference (default: 3, or 1 where the reference is made by a command)",
    )
    parser.add_argument(
        "--jobs", type=positive, metavar="N", help="scorings at a time (default: as many as disturb no measurement)"
    )
    add_profile_option(parser)
    add_model_options(parser)
    add_sandbox(parser)
    add_json(parser)


def _calibrate_options(parser: argparse.ArgumentParser) -> None:
    add_task(parser)
    parser.add_argument("--repeats", type=positive, default=5, metavar="N")
    add_profile_option(parser)
    add_model_options(parser)
    add_sandbox(parser)
    add_json(parser)


def _validate(options: argparse.Namespace) -> int:
    from re_bench.report.run_tables import validation_table
    from re_bench.runs.validate import default_jobs, default_repeats, validate
    from re_bench.task.discovery import find_task, find_tasks
    from re_bench.task.model_choice import choose_model
    from re_bench.task.profile_choice import choose_profile

    model = ChatModel.from_options(options)
    named = [find_task(name) for name in options.tasks]
    tasks = named or [task for task in find_tasks().values() if task.scorer.is_file()]
    reports = []
    for each in tasks:
        profile, _entry = choose_profile(each, options.profile)
        task = choose_model(each, profile, model)
        jobs = options.jobs or default_jobs(task, profile)
        repeats = options.repeats or default_repeats(task)
        report = validate(task, profile, repeats=repeats, jobs=jobs, sandbox=options.sandbox, solution=options.solution)
        reports.append(report)
        if not options.json:
            print(validation_table(report), flush=True)
    holds = all(report.holds for report in reports)
    if options.json:
        print_json({"reports": [report.to_dict() for report in reports], "holds": holds})
    return 0 if holds else 1


def _calibrate(options: argparse.Namespace) -> int:
    from re_bench.runs.calibrate import calibrate
    from re_bench.task.discovery import find_task
    from re_bench.task.model_choice import choose_model
    from re_bench.task.profile_choice import choose_profile

    task = find_task(options.task)
    profile, _entry = choose_profile(task, options.profile)
    task = choose_model(task, profile, ChatModel.from_options(options))
    anchors = calibrate(task, profile, repeats=options.repeats, sandbox=options.sandbox)
    if options.json:
        print_json({"task": task.name, "profile": profile, "anchors": anchors.model_dump(mode="json")})
    else:
        print(f"{task.name}, profile {profile}: starting {anchors.starting}, reference {anchors.reference}")
        print(f"written to {task.directory / 'anchors.toml'}")
    return 0


COMMANDS = (
    Command("validate", "check baseline, reference and every cheat of tasks", _validate_options, _validate),
    Command("calibrate", "measure the anchors of a task and write them down", _calibrate_options, _calibrate),
)
