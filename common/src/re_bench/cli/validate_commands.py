"""The commands for maintainers of tasks: ``validate`` and ``calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_cluster, add_jobs, add_json, add_sandbox, add_task, positive, print_json
from re_bench.errors import ReBenchError, UsageError
from re_bench.gpu.devices import add_scoring_gpu
from re_bench.processes import print_progress
from re_bench.task.chat_model import ChatModel, add_model_options
from re_bench.task.profile_names import add_profile_option

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from re_bench.doctor import Target
    from re_bench.gpu.devices import GpuPlan
    from re_bench.runs.validation import Report
    from re_bench.runs.validation_history import ValidationRecord
    from re_bench.runs.validation_view import ValidationView
    from re_bench.task.discovery import Task
    from re_bench.task.manifest import Profile


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
    add_jobs(parser, "as many scorings on each machine as disturb no measurement")
    add_scoring_gpu(parser, "all GPUs, one such scoring at a time on each")
    add_profile_option(parser)
    add_model_options(parser)
    add_cluster(parser)
    add_sandbox(parser)
    add_json(parser)


def _calibrate_options(parser: argparse.ArgumentParser) -> None:
    add_task(parser)
    text = "scorings of baseline and reference (default: 5)"
    parser.add_argument("--repeats", type=positive, default=5, metavar="N", help=text)
    add_profile_option(parser)
    add_model_options(parser)
    add_cluster(parser)
    add_sandbox(parser)
    add_json(parser)


def _validate(options: argparse.Namespace) -> int:
    from re_bench.cli.run_tables import summary_table, validation_table
    from re_bench.cli.validation_changes import describe_changes
    from re_bench.runs.validation_history import compare_and_keep, last_validation
    from re_bench.tables import terminal_width
    from re_bench.task.discovery import find_task, find_tasks

    if options.solution is not None and not options.solution.is_dir():
        raise UsageError(f"--solution {options.solution}: no such directory")
    named = [find_task(name) for name in options.tasks]
    tasks = named or [task for task in find_tasks().values() if task.scorer.is_file()]
    chosen, blocked = _choose_runnable(tasks, options)
    on_gpu = any(target.task.profile(target.profile).device == "cuda" for target in chosen)
    if options.ray and options.scoring_gpu:
        raise UsageError("--scoring-gpu is of this machine; leave it out with --ray")
    gpus = None if options.ray else _gpus(options.scoring_gpu, needed=on_gpu)
    reports, compared = [], []
    for number, target in enumerate(chosen, start=1):
        last = None if options.ray else last_validation(target.task.name, target.profile)
        place = f"task {number} of {len(chosen)}" if len(chosen) > 1 else ""
        with _view(target, last, place) as view:
            report = _report_of(target, options, gpus, view, alone=len(tasks) == 1)
        reports.append(report)
        if not options.ray and report.rows:  # what other machines need says nothing of this one
            compared.append(compare_and_keep(target.task, report, last))
        if not options.json:
            print(validation_table(report, terminal_width()), flush=True)
    reports += blocked
    holds = all(report.holds for report in reports)
    if options.json:
        told = {"reports": [report.to_dict() for report in reports], "holds": holds}
        print_json(told | {"history": [comparison.to_dict() for comparison in compared]})
        return 0 if holds else 1
    if len(reports) > 1:
        print(summary_table(reports))
    if compared:
        print(describe_changes(compared))
    return 0 if holds else 1


def _report_of(
    target: Target, options: argparse.Namespace, gpus: GpuPlan | None, view: ValidationView | None, *, alone: bool
) -> Report:
    """Validate a task; where it is not ``alone``, a failure of ours is a report, since the others go on.

    Raises:
        ReBenchError: if something of ours fails, and no other task is to be validated.
    """
    from re_bench.runs.validate import default_repeats, validate
    from re_bench.runs.validation import not_run
    from re_bench.task.choices import choose_model

    task, profile = target
    try:
        return validate(
            choose_model(task, profile, ChatModel.from_options(options)),
            profile,
            repeats=options.repeats or default_repeats(task),
            jobs=options.jobs,
            sandbox=options.sandbox,
            solution=options.solution,
            gpus=gpus if task.profile(profile).device == "cuda" else None,
            gpu_type=options.gpu_type,
            cluster=options.ray,
            view=view,
        )
    except ReBenchError as error:
        if alone:
            raise
        return not_run(task, profile, str(error))


def _choose_runnable(tasks: Sequence[Task], options: argparse.Namespace) -> tuple[list[Target], list[Report]]:
    """Return the tasks that can run here in their profiles, and reports of the others, which are told at once.

    Nothing is known of the nodes of a cluster; there all tasks that have the profile can run.

    Raises:
        UsageError: if none can.
    """
    from re_bench.doctor import choose_targets, examine, reasons
    from re_bench.runs.validation import not_run
    from re_bench.task.choices import profile_name

    targets, findings = choose_targets(tasks, options.profile)
    if options.ray is None:
        findings += examine(targets, options.sandbox, network=False)
    why = reasons(findings)
    runnable = [target for target in targets if target.task.name not in why]
    tasks_by_reason: dict[str, list[str]] = {}
    for task, reason in why.items():
        tasks_by_reason.setdefault(reason, []).append(task)
    lines = [f"{', '.join(names)} cannot run here: {reason}" for reason, names in tasks_by_reason.items()]
    if why and not runnable:
        raise UsageError("\n".join(lines))
    for line in lines:
        print_progress(line)
    profile = options.profile
    return runnable, [not_run(task, profile_name(task, profile), why[task.name]) for task in tasks if task.name in why]


def _view(target: Target, last: ValidationRecord | None, place: str) -> AbstractContextManager[ValidationView | None]:
    """Return what shows a validation while it runs: a table where stderr is a terminal, else None, for lines."""
    from contextlib import nullcontext

    from re_bench.cli.live import has_live_terminal

    if not has_live_terminal():
        return nullcontext()
    from re_bench.cli.validate_view import live_view

    return live_view(target.task, target.profile, last, place)


def _choose_profile(task: Task, options: argparse.Namespace) -> tuple[str, Profile]:
    """Return the profile; on a cluster this machine may lack the device."""
    from re_bench.task.choices import choose_profile, profile_name

    if options.ray is None:
        return choose_profile(task, options.profile)
    name = profile_name(task, options.profile)
    return name, task.profile(name)


def _gpus(scoring_gpu: str | None, *, needed: bool) -> GpuPlan | None:
    """Return what runs on which GPU, or None where no profile needs one."""
    from re_bench.gpu import state
    from re_bench.gpu.devices import dedicate_gpu, keep_off_timed, share_gpus

    if not needed:
        if scoring_gpu is not None:
            raise UsageError(f"--scoring-gpu {scoring_gpu}: nothing here needs a GPU in this profile; leave it out")
        return None
    if scoring_gpu is None:
        return share_gpus(state.identify_all())
    plan = dedicate_gpu(state.identify_all(), scoring_gpu)
    keep_off_timed(plan)
    return plan


def _calibrate(options: argparse.Namespace) -> int:
    from re_bench.runs.calibrate import calibrate
    from re_bench.task.choices import choose_model
    from re_bench.task.discovery import find_task

    task = find_task(options.task)
    profile, _entry = _choose_profile(task, options)
    task = choose_model(task, profile, ChatModel.from_options(options))
    anchors = calibrate(
        task,
        profile,
        repeats=options.repeats,
        sandbox=options.sandbox,
        gpu_type=options.gpu_type,
        cluster=options.ray,
    )
    if options.json:
        print_json({"task": task.name, "profile": profile, "anchors": anchors.model_dump(mode="json")})
    else:
        print(f"{task.name}, profile {profile}: starting {anchors.starting:z.6g}, reference {anchors.reference:z.6g}")
        print(f"written to {task.directory / 'anchors.toml'}")
    return 0


COMMANDS = (
    Command(
        "validate",
        "check baseline, reference and every cheat of tasks",
        _validate_options,
        _validate,
        group="task authors",
        examples=("re-bench validate", "re-bench validate triton_cumsum --profile cpu --repeats 1"),
    ),
    Command(
        "calibrate",
        "measure the anchors of a task and write them down",
        _calibrate_options,
        _calibrate,
        group="benchmark maintainers",
        examples=("re-bench calibrate triton_cumsum --profile gpu",),
    ),
)
