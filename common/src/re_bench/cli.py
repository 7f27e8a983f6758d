"""The ``re-bench`` command. Each subcommand imports what it needs when it runs, so that ``--help`` is quick."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.cli_serve import add_options as add_serving_options
from re_bench.cli_serve import positive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from re_bench.tasks import Task

__all__ = ["main"]

_PROFILES = ("auto", "cpu", "gpu", "paper")
_SANDBOXES = ("bubblewrap", "container", "none")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0 done, 1 a failure, 2 a wrong request, 3 an invalid score.

    Raises:
        SystemExit: with the exit status, if something of ours fails or a signal ends us.
    """
    options = _parser().parse_args(arguments)
    from re_bench.programs import ending_as

    action: Callable[[argparse.Namespace], int] = options.action
    return ending_as("re-bench")(action)(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="re-bench", description="Five research-engineering tasks and their scores.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    tasks = _command(commands, "tasks", _tasks, "list the tasks and their anchors", task=False)
    _add_json(tasks)

    workspace = _command(commands, "workspace", _workspace, "lay out what an agent finds, or one of our solutions")
    workspace.add_argument("directory", metavar="DIR", type=Path, help="a directory that does not exist yet")
    workspace.add_argument("--with", dest="variant", default="baseline", metavar="baseline|reference|cheats/NAME")
    _add_profile(workspace)
    _add_sandbox(workspace)
    _add_json(workspace)

    prepare = _command(commands, "prepare", _prepare, "make the data and models that tasks need", task=False)
    prepare.add_argument(
        "tasks", metavar="TASK", nargs="*", help="names, ids or directories; all that need any if none is given"
    )
    _add_profile(prepare)
    _add_json(prepare)

    score = _command(commands, "score", _score, "score a submission")
    score.add_argument("directory", metavar="DIR", type=Path, help="the submission's directory")
    score.add_argument("--log", metavar="FILE", type=Path, help="append the attempt here and show the final score")
    _add_profile(score)
    _add_sandbox(score)
    _add_json(score)

    validate = _command(
        commands, "validate", _validate, "check baseline, reference and every cheat of tasks", task=False
    )
    validate.add_argument(
        "tasks", metavar="TASK", nargs="*", help="names, ids or directories; all tasks if none is given"
    )
    validate.add_argument("--solution", metavar="DIR", type=Path, help="score this submission beside ours")
    validate.add_argument(
        "--repeats",
        type=positive,
        metavar="N",
        help="scorings of baseline and reference (default: 3, or 1 where the reference is made by a command)",
    )
    validate.add_argument(
        "--jobs", type=positive, metavar="N", help="scorings at a time (default: as many as disturb no measurement)"
    )
    _add_profile(validate)
    _add_sandbox(validate)
    _add_json(validate)

    calibrate = _command(commands, "calibrate", _calibrate, "measure the anchors and write them into task.toml")
    calibrate.add_argument("--repeats", type=positive, default=5, metavar="N")
    _add_profile(calibrate)
    _add_sandbox(calibrate)
    _add_json(calibrate)

    regrade = _command(commands, "regrade", _regrade, "score the stored submissions of a log again", task=False)
    regrade.add_argument("log", metavar="LOG", type=Path, help="an attempt log; it is not changed")
    regrade.add_argument("--into", metavar="FILE", type=Path, help="append the new scores to this log")
    _add_sandbox(regrade)
    _add_json(regrade)

    serve = _command(commands, "serve", _serve, "serve the tasks to agents over the Open Reward Standard", task=False)
    add_serving_options(serve)
    _add_profile(serve)
    _add_sandbox(serve)
    _add_json(serve)

    sandbox = _command(commands, "sandbox", _check_sandbox, "try everything that a sandbox must hold", task=False)
    _add_sandbox(sandbox)
    _add_json(sandbox)
    return parser


def _command(
    commands: Any, name: str, action: Callable[[argparse.Namespace], int], text: str, *, task: bool = True
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.set_defaults(action=action)
    if task:
        parser.add_argument("task", metavar="TASK", help="a task's name or id, or its directory")
    return parser


def _add_profile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", choices=_PROFILES, default="auto", help="auto: gpu where there is one, else cpu")


def _add_sandbox(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sandbox", choices=_SANDBOXES, help="'none' protects nothing and is recorded in the score")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _task(options: argparse.Namespace) -> Task:
    from re_bench.tasks import find_task

    return find_task(options.task)


def _print(value: dict[str, Any]) -> None:
    print(json.dumps(value, allow_nan=False))


def _tasks(options: argparse.Namespace) -> int:
    from re_bench.report.tables import number, table
    from re_bench.tasks import find_tasks

    tasks = find_tasks()
    if options.json:
        _print(
            {
                name: task.manifest.model_dump(mode="json") | {"directory": str(task.directory)}
                for name, task in tasks.items()
            }
        )
        return 0
    rows = []
    for name, task in tasks.items():
        manifest = task.manifest
        known = {profile: manifest.anchors(profile) for profile in manifest.profiles}
        pairs = [(profile, anchors.starting, anchors.reference) for profile, anchors in known.items() if anchors]
        pairs += [
            (f"{profile}, {device.source.hardware}", device.starting, device.reference)
            for profile, entry in manifest.profiles.items()
            for device in entry.devices
        ]
        pairs += [(f"published, {entry.name}", entry.starting, entry.reference) for entry in manifest.published]
        for profile, starting, reference in pairs:
            rows.append([name, manifest.direction, manifest.aggregation, number(starting), number(reference), profile])
    print(table(("task", "better", "final", "starting", "reference", "anchors of"), rows))
    return 0


def _workspace(options: argparse.Namespace) -> int:
    from re_bench.score import profile_name
    from re_bench.workspace import lay_out_and_make

    task, place, variant = _task(options), options.directory, options.variant
    profile = profile_name(task, options.profile)
    task.profile(profile)
    lay_out_and_make(task, place, variant, profile=profile, sandbox=options.sandbox)
    if options.json:
        _print({"task": task.name, "profile": profile, "directory": str(place.resolve()), "with": variant})
    else:
        print(f"{place}: {task.name} with {variant}, profile {profile}")
    return 0


def _prepare(options: argparse.Namespace) -> int:
    import time

    from re_bench.preparing import run_preparation
    from re_bench.score import profile_name
    from re_bench.tasks import find_task, find_tasks

    named = [find_task(name) for name in options.tasks]
    for task in named:
        task.profile(profile_name(task, options.profile))
    done = []
    for task in named or [each for each in find_tasks().values() if each.preparer.is_file()]:
        profile, started = profile_name(task, options.profile), time.monotonic()
        if profile not in task.manifest.profiles:
            outcome = "no such profile"
        else:
            outcome = "prepared" if run_preparation(task, profile) else "nothing to prepare"
        seconds = round(time.monotonic() - started, 1)
        done.append({"task": task.name, "profile": profile, "outcome": outcome, "seconds": seconds})
        if not options.json:
            print(f"{task.name}, profile {profile}: {outcome}, {seconds} s", flush=True)
    if options.json:
        _print({"tasks": done})
    elif not done:
        print("no task here needs anything prepared")
    return 0


def _score(options: argparse.Namespace) -> int:
    from re_bench.runner import score_and_record, score_submission
    from re_bench.score import EXIT_STATUS, describe

    task = _task(options)
    wanted = (task, options.directory, options.profile, options.sandbox)
    score, final = score_and_record(*wanted, options.log) if options.log else (score_submission(*wanted), None)
    if options.json:
        _print(json.loads(score.to_json()) | ({"final": final} if final else {}))
    else:
        print(describe(task, score))
        if final:
            print(f"attempt {final['attempt']}, final so far: raw {final['raw']}, reward {final['reward']}")
    return EXIT_STATUS[score.status]


def _validate(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from re_bench.score import choose_profile
    from re_bench.tasks import find_task, find_tasks
    from re_bench.validate import default_jobs, default_repeats, validate

    named = [find_task(name) for name in options.tasks]
    tasks = named or [task for task in find_tasks().values() if task.scorer.is_file()]
    reports = []
    for task in tasks:
        profile, _entry = choose_profile(task, options.profile)
        jobs = options.jobs or default_jobs(task, profile)
        repeats = options.repeats or default_repeats(task)
        report = validate(task, profile, repeats=repeats, jobs=jobs, sandbox=options.sandbox, solution=options.solution)
        reports.append(report)
        if not options.json:
            print(report.text(), flush=True)
    holds = all(report.holds for report in reports)
    if options.json:
        _print({"reports": [asdict(report) | {"holds": report.holds} for report in reports], "holds": holds})
    return 0 if holds else 1


def _regrade(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from re_bench.errors import UsageError
    from re_bench.regrade import regrade, regraded_table

    if not options.log.is_file():
        raise UsageError(f"{options.log}: there is no attempt log")
    done = regrade(options.log, into=options.into, sandbox=options.sandbox)
    if options.json:
        _print({"regraded": [asdict(entry) for entry in done]})
    else:
        print(regraded_table(done))
    return 0 if all(entry.score is not None and entry.score.status != "error" for entry in done) else 1


def _calibrate(options: argparse.Namespace) -> int:
    from re_bench.calibrate import calibrate
    from re_bench.score import choose_profile

    task = _task(options)
    profile, _entry = choose_profile(task, options.profile)
    anchors = calibrate(task, profile, repeats=options.repeats, sandbox=options.sandbox)
    if options.json:
        _print({"task": task.name, "profile": profile, "anchors": anchors.model_dump(mode="json")})
    else:
        print(f"{task.name}, profile {profile}: starting {anchors.starting}, reference {anchors.reference}")
        print(f"written to {task.directory / 'task.toml'}")
    return 0


def _serve(options: argparse.Namespace) -> int:
    from re_bench.cli_serve import serve

    return serve(options)


def _check_sandbox(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from re_bench.isolation.backend import open_backend
    from re_bench.isolation.conformance import check_all
    from re_bench.report.tables import table

    backend = open_backend(options.sandbox)
    outcomes = check_all(backend)
    holds = all(outcome.held for outcome in outcomes)
    if options.json:
        _print({"sandbox": backend.name, "holds": holds, "checks": [asdict(outcome) for outcome in outcomes]})
        return 0 if holds else 1
    rows = [[each.name, f"{each.seconds:.2f} s", "yes" if each.held else f"NO: {each.why}"] for each in outcomes]
    print(table(("check", "took", "held"), rows))
    print(f"{backend.name}: {sum(each.held for each in outcomes)} of {len(outcomes)} checks hold")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
