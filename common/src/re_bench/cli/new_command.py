"""The command ``re-bench new``: a complete task from a few answers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_json, add_sandbox, print_json

if TYPE_CHECKING:
    import argparse

    from re_bench.task.new_task import Choices

_DIRECTIONS = ("lower", "higher")
_AGGREGATIONS = ("min", "max", "last")


def _new_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the task's folder and package, such as curve_fit")
    parser.add_argument(
        "directory", metavar="DIR", nargs="?", type=Path, help="where to put the folder (default: tasks/ in a "
        "repository of re-bench, elsewhere here)",
    )  # fmt: skip
    parser.add_argument("--direction", choices=_DIRECTIONS, help="which raw score is better (default: lower)")
    parser.add_argument("--aggregation", choices=_AGGREGATIONS, help="of attempts (default: min for lower, else max)")
    parser.add_argument("--profiles", metavar="NAMES", help="of cpu, gpu and paper, with commas (default: cpu)")
    parser.add_argument("--title", metavar="LINE", help="a line for people (default: made of the name)")
    parser.add_argument("--id", metavar="ID", help="by which servers know it (default: the name)")
    parser.add_argument("--yes", action="store_true", help="ask nothing; also where the input is no terminal")
    add_sandbox(parser)
    add_json(parser)


def _new(options: argparse.Namespace) -> int:
    from re_bench.errors import UsageError
    from re_bench.task.check import check_task, fix_all
    from re_bench.task.discovery import repository_around, repository_of_tasks
    from re_bench.task.new_task import check_name, write_new_task

    top = repository_around(Path.cwd())
    parent = options.directory or (top / "tasks" if top else Path())
    if (parent / options.name / "task.toml").exists():
        raise UsageError(f"{parent / options.name} exists already; choose another name or directory")
    check_name(options.name)
    in_repository = repository_of_tasks(parent) is not None
    choices = _choose(options, ask=not options.yes and sys.stdin.isatty())
    task = write_new_task(parent, choices, in_repository=in_repository)
    unmeasured = _measure(task, options.sandbox) if "cpu" in choices.profiles else "only profile cpu is measured here"
    fix_all([check_task(task)])
    report = check_task(task)
    if options.json:
        measured = {"measured": unmeasured is None, "reason": unmeasured}
        print_json({"task": choices.name, "directory": str(task), "problems": len(report.problems), **measured})
    else:
        _print_next(choices, task, unmeasured, in_repository=in_repository)
    return 1 if report.problems else 0


def _choose(options: argparse.Namespace, *, ask: bool) -> Choices:
    """Return what the options say, and of the rest the answers, or the defaults."""
    from rich.console import Console
    from rich.prompt import Prompt

    from re_bench.errors import UsageError
    from re_bench.task.new_task import AGGREGATIONS, Choices

    console = Console(stderr=True)

    def choice(given: str | None, question: str, default: str, among: tuple[str, ...] = ()) -> str:
        if given is not None or not ask:
            return default if given is None else given
        try:
            return Prompt.ask(question, console=console, choices=list(among) or None, default=default)
        except EOFError:
            raise UsageError("no answer; type --yes to be asked nothing") from None

    title = choice(options.title, "Title", options.name.replace("_", " ").capitalize())
    identity = choice(options.id, "Id, by which servers know it", options.name)
    direction = choice(options.direction, "Which raw score is better", "lower", _DIRECTIONS)
    usual = AGGREGATIONS[direction]
    aggregation = choice(options.aggregation, "What counts of a run's attempts", usual, _AGGREGATIONS)
    profiles = choice(options.profiles, "Profiles, of cpu, gpu and paper, with commas between", "cpu")
    names = tuple(dict.fromkeys(word.strip() for word in profiles.split(",") if word.strip()))
    return Choices(options.name, identity, title, direction, aggregation, names)  # type: ignore[arg-type]


def _measure(task: Path, sandbox: str | None) -> str | None:
    """Measure the anchors of profile ``cpu``; return why they could not be, or None."""
    from re_bench.errors import ReBenchError
    from re_bench.runs.calibrate import calibrate
    from re_bench.task.discovery import open_task

    try:
        calibrate(open_task(task), "cpu", repeats=3, sandbox=sandbox)
    except ReBenchError as error:
        return str(error)
    return None


def _print_next(choices: Choices, task: Path, unmeasured: str | None, *, in_repository: bool) -> None:
    name = choices.name if in_repository else str(task)
    print(f"{task}: a complete task; CHANGE ME in its files is what makes it yours, in the order of its README.md")
    if unmeasured is not None:
        print(f"its anchors are not measured ({unmeasured}); type: re-bench calibrate {name}")
    print(f"  re-bench check {name}      # what is wrong with the files\n  re-bench validate {name}   # what it scores")
    if in_repository:
        print(f"  nox -s score-{choices.name}\nThe repository's README.md has a row for it.")
    else:
        print(f"  pip install -e {task}      # then it is listed by: re-bench tasks")


COMMANDS = (
    Command(
        "new",
        "write a new task, complete and valid, from a few answers",
        _new_options,
        _new,
        group="task authors",
        examples=("re-bench new curve_fit --yes",),
    ),
)
