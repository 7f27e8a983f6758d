"""The command ``work``: a person works at a task, with an agent's limits and log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from re_bench.cli.main import EVALUATORS, app
from re_bench.options import Flag, Hours, Json, MaxAttempts, ProfileName, SandboxName, TaskName, print_json
from re_bench.task.chat_model import NO_MODEL, ModelOptions

if TYPE_CHECKING:
    from re_bench.attempts.log import FinalScore
    from re_bench.scoring.attempt import Score
    from re_bench_evaluation.work.work import Work

_HELP = """\
Work at a task as a person: begin, pause, score, finish.

As for an agent, there are a clock and scores. No program runs in between: the clock is a file, which survives a closed
terminal and a reboot. re-bench report reads the directory as it reads any evaluation.
"""
work_app = App(name="work", help=_HELP, group=EVALUATORS)
app.command(work_app)

WorkDirectory = Annotated[Path, Parameter(name="DIR", help="The directory of the work.")]


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _check_tags(_type: object, tags: tuple[str, ...]) -> None:
    for text in tags:
        if not all(_pair(text)):
            raise ValueError(f"expected NAME=VALUE, got {text!r}")


@work_app.command
def begin(
    task: TaskName,
    directory: Annotated[Path, Parameter(name="DIR", help="A directory that does not exist yet.")],
    /,
    *,
    hours: Hours = None,
    max_attempts: MaxAttempts = None,
    person: Annotated[str | None, Parameter(help="A name for the study (a tag of the run).")] = None,
    tag: Annotated[
        tuple[str, ...], Parameter(validator=_check_tags, negative=(), help="NAME=VALUE, for reports; may be repeated.")
    ] = (),
    profile: ProfileName = "auto",
    model: ModelOptions = NO_MODEL,
    sandbox: SandboxName = None,
    json: Json = False,
) -> int:
    """Create DIR/workspace and start the clock."""
    from re_bench.task.choices import choose_model, choose_profile
    from re_bench.task.discovery import find_task
    from re_bench_evaluation.work.work import INSTRUCTIONS, Work
    from re_bench_evaluation.work.work import begin as begin_work

    found = find_task(task)
    chosen, _entry = choose_profile(found, profile)
    found = choose_model(found, chosen, model.chosen())
    tags = dict(map(_pair, tag)) | ({"person": person} if person else {})
    begin_work(
        found, directory, chosen, hours=hours or 8.0, max_attempts=max_attempts or 100, sandbox=sandbox, tags=tags
    )
    work = Work(directory)
    text = (directory / INSTRUCTIONS).read_text(encoding="utf-8")
    if json:
        print_json(_state(work) | {"instructions": text})
    else:
        print(f"{text}\nThe clock goes. All of this is in {directory / INSTRUCTIONS}.")
    return 0


@work_app.command
def pause(directory: WorkDirectory, /, *, json: Json = False) -> int:
    """Stop the clock."""
    from re_bench_evaluation.work.work import Work

    with Work.locked(directory) as work:
        work.pause()
    return _tell(work, f"paused: {_left(work)}", json=json)


@work_app.command
def resume(directory: WorkDirectory, /, *, json: Json = False) -> int:
    """Start the clock again."""
    from re_bench_evaluation.work.work import Work

    with Work.locked(directory) as work:
        work.resume()
    return _tell(work, f"the clock goes: {_left(work)}", json=json)


@work_app.command
def score(directory: WorkDirectory, /, *, json: Json = False) -> int:
    """Score the workspace as it is."""
    from re_bench.scoring.score import EXIT_STATUS
    from re_bench_evaluation.work.work import Work

    with Work.locked(directory) as work:
        result, final = work.score()
    told = _told(work, result, final.attempt)
    _tell(work, f"{_attempt_line(told)}\n{_left(work)}", attempt=told, json=json)
    return EXIT_STATUS[result.status]


@work_app.command
def finish(
    directory: WorkDirectory,
    /,
    *,
    no_score: Annotated[Flag, Parameter(help="End with the attempts that there are.")] = False,
    json: Json = False,
) -> int:
    """Score once more, and end."""
    from re_bench_evaluation.work.work import Work

    with Work.locked(directory) as work:
        result, final = work.finish(scored=not no_score)
    if work.record.state != "ended":
        text = "The scorer failed at the last attempt, so the work has not ended; try again, or give --no-score."
        _tell(work, text, json=json)
        return 1
    return _tell(work, _final_line(work, final, scored=result is not None), json=json)


@work_app.command
def status(directory: WorkDirectory, /, *, json: Json = False) -> int:
    """Show what is left, and what was scored."""
    from re_bench.tables import number, table
    from re_bench_evaluation.work.work import Work

    work = Work(directory)
    shown = work.task.manifest.show_score or work.record.state == "ended"
    rows = [
        [str(one.n), number((one.working_s or 0.0) / 3600, 2), one.status]
        + ([number(one.raw), number(one.reward)] if shown else ["-", "-"])
        for one in work.attempts
    ]
    attempts = table(("attempt", "at hour", "status", "raw", "reward"), rows) if rows else "nothing was scored yet"
    ended = f"\n{_final_line(work, work.final)}" if work.record.state == "ended" else ""
    return _tell(work, f"{work.record.state}: {_left(work)}\n{attempts}{ended}", json=json)


@work_app.command
def collect(
    directory: Annotated[Path, Parameter(name="STUDY", help="The evaluation to write or add to.")],
    /,
    *others: Annotated[Path, Parameter(name="DIR", help="Directories of work.")],
    json: Json = False,
) -> int:
    """Put the work of several people into one evaluation."""
    from re_bench_evaluation.work.work import collect as collect_study

    new = collect_study(directory, list(others))
    if json:
        print_json({"directory": str(directory), "runs": [run.model_dump(mode="json") for run in new]})
    else:
        print("\n".join([f"{directory}: {len(new)} runs more", *(run.run for run in new)]))
    return 0


def _tell(work: Work, text: str, *, json: bool, **more: Any) -> int:
    if json:
        print_json(_state(work) | more)
    else:
        print(text)
    return 0


def _state(work: Work) -> dict[str, Any]:
    """Return what a program may read, and no score that the person is not told."""
    record = work.record
    ended = {"final": record.final} if record.state == "ended" else {}
    return {
        "task": work.task.name,
        "profile": record.profile,
        "directory": str(work.directory.resolve()),
        "state": record.state,
        "hours": record.hours,
        "hours_used": round(record.used_s / 3600, 6),
        "hours_left": round(record.remaining_s / 3600, 6),
        "attempts": record.attempts,
        "attempts_left": max(0, record.max_attempts - record.scored),
        **ended,
    }


def _left(work: Work) -> str:
    record = work.record
    left = max(0, record.max_attempts - record.scored)
    return f"{record.remaining_s / 3600:.2f} of {record.hours:g} hours and {left} attempts are left"


def _told(work: Work, score: Score, number: int) -> dict[str, Any]:
    """Return what the person is told of an attempt; a task may hide its score."""
    shown = work.task.manifest.show_score and score.status == "valid"
    scores = {"raw": score.raw, "reward": score.reward} if shown else {"raw": None, "reward": None}
    return {"attempt": number, "status": score.status, "message": score.message, **scores}


def _attempt_line(told: dict[str, Any]) -> str:
    line = f"Attempt {told['attempt']}: {told['status']}"
    if told["raw"] is not None:
        line += f", raw score {told['raw']:z.6g}, {_reward(told['reward'])}"
    elif told["status"] == "valid":
        line += ". This task does not tell its score"
    return f"{line}\n{told['message']}"


def _reward(reward: float | None) -> str:
    return "no reward without anchors" if reward is None else f"reward {reward:z.4f}"


def _final_line(work: Work, final: FinalScore, *, scored: bool = True) -> str:
    note = "" if scored else "Nothing was scored at the end. "
    if final.raw is None:
        return f"{note}The work has ended; none of {final.attempts} attempts was valid, so there is no score."
    how = {"min": "the lowest", "max": "the highest", "last": "the last"}[work.task.manifest.aggregation]
    of = f"{how} of {final.valid} valid attempts, {final.attempts} in all"
    return f"{note}The work has ended. Final score, {of}: raw score {final.raw:z.6g}, {_reward(final.reward)}"
