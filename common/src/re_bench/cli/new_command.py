"""The command ``new``: a complete task from a few answers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, get_args

from cyclopts import Parameter

from re_bench.cli.main import AUTHORS, app
from re_bench.normalise import How
from re_bench.options import Flag, Json, SandboxName, print_json
from re_bench.task.new_task import AGGREGATIONS, Choices

Direction = Literal["lower", "higher"]


@app.command(group=AUTHORS)
def new(
    name: Annotated[str, Parameter(name="NAME", help="The task's folder and package, such as curve_fit.")],
    directory: Annotated[
        Path | None,
        Parameter(name="DIR", help="Where to put the folder (default: tasks/ in a repository of re-bench, else here)."),
    ] = None,
    /,
    *,
    direction: Annotated[Direction | None, Parameter(help="Which raw score is better (default: lower).")] = None,
    aggregation: Annotated[How | None, Parameter(help="Of attempts (default: min for lower, else max).")] = None,
    profiles: Annotated[str | None, Parameter(help="Of cpu, gpu and paper, with commas (default: cpu).")] = None,
    title: Annotated[str | None, Parameter(help="A line for people (default: made of the name).")] = None,
    id_: Annotated[str | None, Parameter(name="--id", help="The id on servers (default: the name).")] = None,
    yes: Annotated[Flag, Parameter(help="Ask nothing; also where the input is not a terminal.")] = False,
    sandbox: SandboxName = None,
    json: Json = False,
) -> int:
    """Write a new task, complete and valid, from a few answers."""
    from re_bench.errors import UsageError
    from re_bench.task.check import check_task, fix_all
    from re_bench.task.discovery import repository_around, repository_of_tasks
    from re_bench.task.new_task import check_name, write_new_task

    top = repository_around(Path.cwd())
    parent = directory or (top / "tasks" if top else Path())
    if (parent / name / "task.toml").exists():
        raise UsageError(f"{parent / name} exists already; choose another name or directory")
    check_name(name)
    in_repository = repository_of_tasks(parent) is not None
    given = (title, id_, direction, aggregation, profiles)
    choices = _choose(name, *given, ask=not yes and sys.stdin.isatty())
    task = write_new_task(parent, choices, in_repository=in_repository)
    unmeasured = _measure(task, sandbox) if "cpu" in choices.profiles else "only profile cpu is measured here"
    fix_all([check_task(task)])
    report = check_task(task)
    if json:
        measured = {"measured": unmeasured is None, "reason": unmeasured}
        print_json({"task": choices.name, "directory": str(task), "problems": len(report.problems), **measured})
    else:
        _print_next(choices, task, unmeasured, in_repository=in_repository)
    return 1 if report.problems else 0


def _choose(  # noqa: PLR0917 - one for each question
    name: str,
    title: str | None,
    id_: str | None,
    direction: str | None,
    aggregation: str | None,
    profiles: str | None,
    *,
    ask: bool,
) -> Choices:
    """Return what the options say, and of the rest the answers, or the defaults."""
    from rich.console import Console
    from rich.prompt import Prompt

    from re_bench.errors import UsageError

    console = Console(stderr=True)

    def choice(given: str | None, question: str, default: str, among: tuple[str, ...] = ()) -> str:
        if given is not None or not ask:
            return default if given is None else given
        try:
            return Prompt.ask(question, console=console, choices=list(among) or None, default=default)
        except EOFError:
            raise UsageError("no answer; type --yes to be asked nothing") from None

    line = choice(title, "Title", name.replace("_", " ").capitalize())
    identity = choice(id_, "Id, by which servers know it", name)
    better = choice(direction, "Which raw score is better", "lower", get_args(Direction))
    usual = AGGREGATIONS[better]
    counted = choice(aggregation, "What counts of a run's attempts", usual, get_args(How))
    listed = choice(profiles, "Profiles, of cpu, gpu and paper, with commas between", "cpu")
    names = tuple(dict.fromkeys(word.strip() for word in listed.split(",") if word.strip()))
    return Choices(name, identity, line, better, counted, names)  # type: ignore[arg-type]


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
