"""The commands about tasks: ``tasks``, ``prepare``, ``workspace``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_json, add_sandbox, add_task, print_json
from re_bench.task.profile_names import add_profile_option

if TYPE_CHECKING:
    import argparse


def _tasks_options(parser: argparse.ArgumentParser) -> None:
    add_json(parser)


def _prepare_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tasks", metavar="TASK", nargs="*", help="names, ids or directories; all that need any if none is given"
    )
    parser.add_argument(
        "--instance", metavar="N", type=int, help="of one task that has several: serve and score this one from now on"
    )
    add_profile_option(parser)
    add_json(parser)


def _workspace_options(parser: argparse.ArgumentParser) -> None:
    add_task(parser)
    parser.add_argument("directory", metavar="DIR", type=Path, help="a directory that does not exist yet")
    text = "what lies in it: baseline, reference or cheats/NAME (default: baseline)"
    parser.add_argument("--with", dest="variant", default="baseline", metavar="SOLUTION", help=text)
    add_profile_option(parser)
    add_sandbox(parser)
    add_json(parser)


def _tasks(options: argparse.Namespace) -> int:
    from re_bench.processes import print_progress
    from re_bench.tables import number, table
    from re_bench.task.discovery import find_usable_tasks

    tasks, malformed = find_usable_tasks()
    for name, error in malformed.items():
        print_progress(f"{name} is malformed; type re-bench check {name}: {error.problems[0]}")
    status = 1 if malformed else 0
    if options.json:
        print_json(
            {
                name: task.manifest.model_dump(mode="json") | {"directory": str(task.directory)}
                for name, task in tasks.items()
            }
        )
        return status
    rows = []
    for name, task in tasks.items():
        manifest = task.manifest
        stored = [(profile, entry.anchors) for profile, entry in manifest.profiles.items()]
        pairs = [(profile, anchors.starting, anchors.reference) for profile, anchors in stored if anchors]
        pairs += [
            (f"{profile}, {other.source.model or other.source.hardware}", other.starting, other.reference)
            for profile, entry in manifest.profiles.items()
            for other in (*entry.devices, *entry.models)
        ]
        pairs += [(f"published, {entry.name}", entry.starting, entry.reference) for entry in manifest.published]
        for profile, starting, reference in pairs:
            rows.append([name, manifest.direction, manifest.aggregation, number(starting), number(reference), profile])
    print(table(("task", "better", "final", "starting", "reference", "anchors of"), rows))
    return status


def _workspace(options: argparse.Namespace) -> int:
    from re_bench.task.choices import profile_name
    from re_bench.task.discovery import find_task
    from re_bench.task.workspace import lay_out_and_make

    task, directory, variant = find_task(options.task), options.directory, options.variant
    profile = profile_name(task, options.profile)
    task.profile(profile)
    lay_out_and_make(task, directory, variant, profile=profile, sandbox=options.sandbox)
    if options.json:
        print_json({"task": task.name, "profile": profile, "directory": str(directory.resolve()), "with": variant})
    else:
        print(f"{directory}: {task.name} with {variant}, profile {profile}")
    return 0


def _prepare(options: argparse.Namespace) -> int:
    import time

    from re_bench.errors import UsageError
    from re_bench.task.choices import profile_name
    from re_bench.task.discovery import find_task, find_tasks
    from re_bench.task.prepare import run_preparation

    selected = [find_task(name) for name in options.tasks]
    if options.instance is not None and len(selected) != 1:
        raise UsageError("--instance chooses among those of one task; name that task alone")
    for task in selected:
        task.profile(profile_name(task, options.profile))
    outcomes = []
    for task in selected or [task for task in find_tasks().values() if task.preparer.is_file()]:
        profile, started = profile_name(task, options.profile), time.monotonic()
        if profile not in task.manifest.profiles:
            outcome = "no such profile"
        else:
            prepared = run_preparation(task, profile, instance=options.instance)
            outcome = "prepared" if prepared else "nothing to prepare"
        seconds = round(time.monotonic() - started, 1)
        outcomes.append({"task": task.name, "profile": profile, "outcome": outcome, "seconds": seconds})
        if not options.json:
            print(f"{task.name}, profile {profile}: {outcome}, {seconds} s", flush=True)
    if options.json:
        print_json({"tasks": outcomes})
    elif not outcomes:
        print("no task here needs anything prepared")
    return 0


COMMANDS = (
    Command(
        "tasks",
        "list the tasks and their anchors",
        _tasks_options,
        _tasks,
        group="everybody",
        examples=("re-bench tasks",),
    ),
    Command(
        "prepare",
        "make the data and models that tasks need",
        _prepare_options,
        _prepare,
        group="everybody",
        examples=("re-bench prepare", "re-bench prepare small_scaling_law --instance 3"),
    ),
    Command(
        "workspace",
        "lay out what an agent starts from, or one of our solutions",
        _workspace_options,
        _workspace,
        group="task authors",
        examples=(
            "re-bench workspace triton_cumsum /tmp/work",
            "re-bench workspace triton_cumsum /tmp/cheat --with cheats/cached_output",
        ),
    ),
)
