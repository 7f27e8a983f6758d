"""The command ``work``: a person works at a task, with an agent's limits and log."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.cli.command import Command, add_hours, add_json, add_max_attempts, add_sandbox, print_json
from re_bench.task.chat_model import ChatModel, add_model_options
from re_bench.task.profile_names import add_profile_option

if TYPE_CHECKING:
    from re_bench.runs.attempts import FinalScore
    from re_bench.scoring.score import Score
    from re_bench_evaluation.work.work import Work

_USAGE = """\
re-bench work TASK DIR [options]      lay out DIR/workspace, and start the clock
       re-bench work pause|resume DIR        stop the clock, or have it go on
       re-bench work score DIR               score the workspace as it is
       re-bench work status DIR              tell what is left, and what was scored
       re-bench work finish DIR              score once more, and end
       re-bench work collect STUDY DIR...    put the work of several people into one evaluation
"""
_TEXT = """\
Work at a task as an agent would: against the clock, with scores. No program runs in between: the clock is a file, which
survives a closed terminal and a reboot. re-bench report reads DIR as it reads any evaluation.
"""
_BEGINNING = ("hours", "max_attempts", "person", "tag", "sandbox", "model")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.usage, parser.description = _USAGE, _TEXT
    parser.add_argument(
        "what", metavar="TASK|ACTION", help="a task to begin with, or what to do with work that was begun"
    )
    parser.add_argument(
        "directory", metavar="DIR", type=Path, help="of the work; for a task one that does not exist yet"
    )
    parser.add_argument("others", metavar="DIR", type=Path, nargs="*", default=[], help=argparse.SUPPRESS)
    group = parser.add_argument_group("for the beginning")
    add_hours(group)
    add_max_attempts(group)
    group.add_argument("--person", metavar="NAME", help="who it is, by a name for the study (a tag of the run)")
    group.add_argument(
        "--tag", action="append", default=[], type=_tag, metavar="NAME=VALUE", help="for reports; repeat"
    )
    add_profile_option(parser)
    add_model_options(parser)
    add_sandbox(parser)
    parser.add_argument("--no-score", action="store_true", help="finish with the attempts that there are")
    add_json(parser)


def _tag(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    return name, value


def _work(options: argparse.Namespace) -> int:
    from re_bench.errors import UsageError

    action = _ACTIONS.get(options.what)
    if options.others and options.what != "collect":
        known = ", ".join(_ACTIONS)
        text = f"{options.what} takes one directory; the actions are {known}"
        raise UsageError(f"unexpected argument {str(options.others[0])!r}: {text}")
    if action is None:
        return _begin(options)
    superfluous = [name for name in _BEGINNING if getattr(options, name)]
    if superfluous or options.profile != "auto":
        name = superfluous[0] if superfluous else "profile"
        raise UsageError(f"--{name.replace('_', '-')} is for the beginning: re-bench work TASK DIR")
    if options.no_score and options.what != "finish":
        raise UsageError("--no-score is for finish")
    return action(options)


def _begin(options: argparse.Namespace) -> int:
    from re_bench.task.choices import choose_model, choose_profile
    from re_bench.task.discovery import find_task
    from re_bench_evaluation.work.instructions import FILE
    from re_bench_evaluation.work.work import Work, WorkSettings, begin

    task = find_task(options.what)
    profile, _entry = choose_profile(task, options.profile)
    task = choose_model(task, profile, ChatModel.from_options(options))
    tags = dict(options.tag) | ({"person": options.person} if options.person else {})
    settings = WorkSettings(options.hours or 8.0, options.max_attempts or 100, options.sandbox, tags)
    begin(task, options.directory, profile, settings)
    work = Work(options.directory)
    text = (options.directory / FILE).read_text(encoding="utf-8")
    if options.json:
        print_json(_state(work) | {"instructions": text})
    else:
        print(f"{text}\nThe clock goes. All of this is in {options.directory / FILE}.")
    return 0


def _pause(options: argparse.Namespace) -> int:
    from re_bench_evaluation.work.work import Work

    with Work.locked(options.directory) as work:
        work.pause()
    return _tell(options, work, f"paused: {_left(work)}")


def _resume(options: argparse.Namespace) -> int:
    from re_bench_evaluation.work.work import Work

    with Work.locked(options.directory) as work:
        work.resume()
    return _tell(options, work, f"the clock goes: {_left(work)}")


def _score(options: argparse.Namespace) -> int:
    from re_bench.scoring.score import EXIT_STATUS
    from re_bench_evaluation.work.work import Work

    with Work.locked(options.directory) as work:
        score, final = work.score()
    told = _told(work, score, final.attempt)
    _tell(options, work, f"{_attempt_line(told)}\n{_left(work)}", attempt=told)
    return EXIT_STATUS[score.status]


def _finish(options: argparse.Namespace) -> int:
    from re_bench_evaluation.work.work import Work

    with Work.locked(options.directory) as work:
        score, final = work.finish(scored=not options.no_score)
    if work.record.state != "ended":
        text = "The last attempt failed for a reason of ours, so the work has not ended; try again, or give --no-score."
        _tell(options, work, text)
        return 1
    return _tell(options, work, _final_line(work, final, scored=score is not None))


def _status(options: argparse.Namespace) -> int:
    from re_bench.tables import number, table
    from re_bench_evaluation.work.work import Work

    work = Work(options.directory)
    shown = work.task.manifest.show_score or work.record.state == "ended"
    rows = [
        [str(one.n), number((one.working_s or 0.0) / 3600, 2), one.status]
        + ([number(one.raw), number(one.reward)] if shown else ["-", "-"])
        for one in work.attempts
    ]
    attempts = table(("attempt", "at hour", "status", "raw", "reward"), rows) if rows else "nothing was scored yet"
    ended = f"\n{_final_line(work, work.final)}" if work.record.state == "ended" else ""
    return _tell(options, work, f"{work.record.state}: {_left(work)}\n{attempts}{ended}")


def _collect(options: argparse.Namespace) -> int:
    from re_bench_evaluation.work.study import collect

    new = collect(options.directory, options.others)
    if options.json:
        print_json({"directory": str(options.directory), "runs": [run.model_dump(mode="json") for run in new]})
    else:
        print("\n".join([f"{options.directory}: {len(new)} runs more", *(run.run for run in new)]))
    return 0


def _tell(options: argparse.Namespace, work: Work, text: str, **more: Any) -> int:
    if options.json:
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
        line += f", raw score {told['raw']:z.6g}"
        line += ", no reward without anchors" if told["reward"] is None else f", reward {told['reward']:z.4f}"
    elif told["status"] == "valid":
        line += ". This task does not tell its score"
    return f"{line}\n{told['message']}"


def _final_line(work: Work, final: FinalScore, *, scored: bool = True) -> str:
    note = "" if scored else "Nothing was scored at the end. "
    if final.raw is None:
        return f"{note}The work has ended; none of {final.attempts} attempts was valid, so there is no score."
    reward = "no reward without anchors" if final.reward is None else f"reward {final.reward:z.4f}"
    how = {"min": "the lowest", "max": "the highest", "last": "the last"}[work.task.manifest.aggregation]
    of = f"{how} of {final.valid} valid attempts, {final.attempts} in all"
    return f"{note}The work has ended. Final score, {of}: raw score {final.raw:z.6g}, {reward}"


_ACTIONS = {
    "pause": _pause,
    "resume": _resume,
    "score": _score,
    "finish": _finish,
    "status": _status,
    "collect": _collect,
}

COMMAND = Command(
    "work",
    "work at a task as a person: begin, pause, score, finish",
    _options,
    _work,
    examples=(
        "re-bench work triton_cumsum my-work/ --hours 4",
        "re-bench work score my-work/",
        "re-bench work finish my-work/",
    ),
)
