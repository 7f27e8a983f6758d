"""The commands for maintainers of tasks: ``validate`` and ``calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_cluster, add_jobs, add_json, add_sandbox, add_task, positive, print_json
from re_bench.errors import UsageError
from re_bench.gpu.devices import add_scoring_gpu
from re_bench.task.chat_model import ChatModel, add_model_options
from re_bench.task.profile_names import add_profile_option

if TYPE_CHECKING:
    import argparse
    from contextlib import AbstractContextManager

    from re_bench.gpu.devices import GpuPlan
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
    from re_bench.report.run_tables import validation_table
    from re_bench.report.validation_changes import describe_changes
    from re_bench.runs.validate import default_repeats, validate
    from re_bench.runs.validation_history import compare_and_keep, last_validation
    from re_bench.task.discovery import find_task, find_tasks
    from re_bench.task.model_choice import choose_model

    model = ChatModel.from_options(options)
    named = [find_task(name) for name in options.tasks]
    tasks = named or [task for task in find_tasks().values() if task.scorer.is_file()]
    chosen = [(task, *_choose_profile(task, options)) for task in tasks]
    on_gpu = any(entry.device == "cuda" for _task, _profile, entry in chosen)
    if options.ray and options.scoring_gpu:
        raise UsageError("--scoring-gpu is of this machine; leave it out with --ray")
    gpus = None if options.ray else _gpus(options.scoring_gpu, needed=on_gpu)
    reports, compared = [], []
    for number, (one, profile, entry) in enumerate(chosen, start=1):
        task, plan = choose_model(one, profile, model), gpus if entry.device == "cuda" else None
        last = None if options.ray else last_validation(task.name, profile)
        place = f"task {number} of {len(chosen)}" if len(chosen) > 1 else ""
        with _view(task, profile, last, place) as view:
            report = validate(
                task,
                profile,
                repeats=options.repeats or default_repeats(task),
                jobs=options.jobs,
                sandbox=options.sandbox,
                solution=options.solution,
                gpus=plan,
                gpu_type=options.gpu_type,
                cluster=options.ray,
                view=view,
            )
        reports.append(report)
        if not options.ray:  # what other machines need says nothing of this one
            compared.append(compare_and_keep(task, report, last))
        if not options.json:
            print(validation_table(report), flush=True)
    holds = all(report.holds for report in reports)
    if options.json:
        told = {"reports": [report.to_dict() for report in reports], "holds": holds}
        print_json(told | {"history": [comparison.to_dict() for comparison in compared]})
    elif compared:
        print(describe_changes(compared))
    return 0 if holds else 1


def _view(
    task: Task, profile: str, last: ValidationRecord | None, place: str
) -> AbstractContextManager[ValidationView | None]:
    """Return what shows a validation while it runs: a table where stderr is a terminal, else None, for lines."""
    from contextlib import nullcontext

    from re_bench.cli.live import has_live_terminal

    if not has_live_terminal():
        return nullcontext()
    from re_bench.cli.validate_view import live_view

    return live_view(task, profile, last, place)


def _choose_profile(task: Task, options: argparse.Namespace) -> tuple[str, Profile]:
    """Return the profile; on a cluster this machine may lack the device."""
    from re_bench.task.profile_choice import choose_profile, profile_name

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
    from re_bench.task.discovery import find_task
    from re_bench.task.model_choice import choose_model

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
