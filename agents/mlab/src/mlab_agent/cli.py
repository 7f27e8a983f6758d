"""The commands: run (which needs no word), ``resume``, ``show``, ``demo``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from mlab_agent.budget import duration
from mlab_agent.homes.running import hide_this_process
from mlab_agent.keys import KEY_VARIABLE, take_key
from mlab_agent.session import TRACE, Session, SettingsError, new_run_directory, settings_of
from mlab_agent.settings import ModelOptions, RunSettings
from mlab_agent.show import one_line, pages
from mlab_agent.tracing import TraceError, read_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mlab_agent.agent import Outcome

__all__ = ["main"]

_OPENAI = "https://api.openai.com/v1"
_LIMITS = frozenset({"steps", "time", "cost", "tokens"})
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|m|s)(?:ours?|ays?|in(?:utes?)?|ec(?:onds?)?)?\s*")
_CHANGEABLE = ("base_url", "max_steps", "max_seconds", "max_dollars", "max_tokens", "script_seconds")

_USAGE = """\
mlab-agent --workdir DIR --task-file FILE --model NAME [options]
       mlab-agent --ors URL --task ID --model NAME [options]
       mlab-agent resume RUN [options]
       mlab-agent show TRACE [--whole]
       mlab-agent demo [--model NAME]
"""
_STATUS = "Exit status: 0 after a final answer, 3 at a limit, 2 if the run cannot be made, 1 otherwise."


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    commands: dict[str, Callable[[Sequence[str]], int]] = {"show": _show, "resume": _resume, "demo": _demo}
    command = commands.get(arguments[0]) if arguments else None
    try:
        return command(arguments[1:]) if command else _run(arguments)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'run'}: {each['msg']}" for each in error.errors())
        return _refuse(problems)
    except (SettingsError, TraceError) as error:
        return _refuse(str(error))


def _run(arguments: Sequence[str]) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    if (given.workdir is None) == (given.ors is None):
        parser.error("give either --workdir with --task-file, or --ors with --task")
    if not given.model:
        parser.error("give --model NAME")
    key = take_key(given.key_variable)
    name = given.task if given.ors else Path(given.workdir).resolve().name
    run = Path(given.run) if given.run else new_run_directory(re.sub(r"\W+", "-", name or "run"))
    return _go(_settings(given), run, key, task=_task(given.task_file))


def _resume(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("mlab-agent resume", description="Go on with a run that was killed or has ended.")
    parser.add_argument("run", metavar="RUN", help="the run's directory")
    _add_limits(parser)
    _add_access(parser, None)
    given = parser.parse_args(arguments)
    key = take_key(given.key_variable)
    settings = _changed(settings_of(Path(given.run)), given)
    return _go(settings, Path(given.run), key, resume=True)


def _show(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("mlab-agent show", description="Show a trace as text.")
    parser.add_argument("trace", metavar="TRACE", help="the file, or the run's directory")
    parser.add_argument("--whole", action="store_true", help="cut nothing")
    given = parser.parse_args(arguments)
    path = Path(given.trace)
    try:
        for page in pages(read_trace(path / TRACE if path.is_dir() else path), whole=given.whole):
            print(page)
        sys.stdout.flush()
    except BrokenPipeError:  # as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _demo(arguments: Sequence[str]) -> int:
    from mlab_agent.demo import lay_out, play  # noqa: PLC0415 - only here
    from mlab_agent.standin import StandIn  # noqa: PLC0415 - only here

    text = "Work on a small task: with a stand-in for a model, or with --model NAME and its key."
    parser = argparse.ArgumentParser("mlab-agent demo", description=text)
    parser.add_argument("--into", default="mlab-demo", metavar="DIR", help="a new directory (default: %(default)s)")
    parser.add_argument("--model", metavar="NAME", help="a real model instead of the stand-in")
    _add_access(parser, os.environ.get("OPENAI_BASE_URL") or _OPENAI)
    given = parser.parse_args(arguments)
    into = _fresh(Path(given.into))
    lay_out(into / "workspace")
    task = (into / "workspace" / "instructions.txt").read_text(encoding="utf-8")
    model = ModelOptions(name=given.model or "stand-in")
    settings = RunSettings(workdir=str(into / "workspace"), model=model, max_steps=30, max_seconds=900.0)
    if given.model:
        at = settings.model_copy(update={"base_url": given.base_url})
        return _go(at, into / "run", take_key(given.key_variable), task=task)
    with StandIn(play) as server:
        print("No --model: a stand-in on this machine plays one.", file=sys.stderr)
        at = settings.model_copy(update={"base_url": server.url, "tools": "text"})
        return _go(at, into / "run", "", task=task)


def _go(settings: RunSettings, run: Path, key: str, *, task: str | None = None, resume: bool = False) -> int:
    if not key and settings.base_url.rstrip("/") == _OPENAI:
        return _refuse(f"{_OPENAI} needs a key: set {KEY_VARIABLE}, or give --base-url for another server")
    hide_this_process()
    step = 0

    def watch(event: dict[str, Any]) -> None:
        nonlocal step
        step += event["kind"] == "observation"
        if line := one_line(event, step):
            print(line, file=sys.stderr, flush=True)

    with Session(settings, run, key=key, task=task, resume=resume, watch=watch) as session:
        step = session.state.steps
        print(f"The run is in {run}", file=sys.stderr, flush=True)
        outcome = session.run()
        spending = session.state.spending
        spent = f"{session.state.steps} steps, {spending.calls} calls, {spending.tokens} tokens"
        dollars = f", ${spending.dollars:.4f}" if spending.dollars else ""
        print(f"{spent}{dollars}, {duration(session.trace.elapsed())}; see: mlab-agent show {run}", file=sys.stderr)
    return _tell(outcome)


def _tell(outcome: Outcome) -> int:
    if outcome.reason == "final answer":
        print(outcome.answer)
        return 0
    print(f"mlab-agent: no final answer ({outcome.reason}): {outcome.detail.strip()}", file=sys.stderr)
    print(outcome.answer)
    return 3 if outcome.reason in _LIMITS else 1


def _refuse(text: str) -> int:
    print(f"mlab-agent: {text}", file=sys.stderr)
    return 2


def _task(file: str | None) -> str | None:
    if file is None:
        return None
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SettingsError(f"the task file {file} cannot be read: {error.strerror}") from None


def _fresh(wanted: Path) -> Path:
    for count in range(1, 1000):
        each = wanted if count == 1 else wanted.with_name(f"{wanted.name}-{count}")
        if not each.exists():
            return each
    raise AssertionError


def _settings(given: argparse.Namespace) -> RunSettings:
    model = ModelOptions(
        name=given.model,
        price=given.price,
        context_tokens=given.context_tokens,
        max_output_tokens=given.max_output_tokens,
        temperature=given.temperature,
    )
    other = {"name": given.fast_model, "price": given.fast_price, "context_tokens": given.fast_context_tokens}
    fast = model.model_copy(update=other) if given.fast_model else None
    settings = RunSettings(
        workdir=given.workdir and str(Path(given.workdir).resolve()),
        submission=given.submission and str(Path(given.submission).resolve()),
        read_only=tuple(given.read_only),
        left_out=tuple(given.left_out),
        ors=given.ors,
        task=given.task,
        environment=given.environment,
        split=given.split,
        token_variable=given.token_variable,
        secrets=dict(each.partition("=")[::2] for each in given.secret),
        model=model,
        fast_model=fast,
        tools=given.tools,
        recent_steps=given.recent_steps,
    )
    return _changed(settings, given)


def _changed(settings: RunSettings, given: argparse.Namespace) -> RunSettings:
    """Return settings with the limits and the server that the command line has."""
    changed = {name: getattr(given, name) for name in _CHANGEABLE if getattr(given, name) is not None}
    return RunSettings.model_validate({**settings.model_dump(), **changed})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("mlab-agent", usage=_USAGE, epilog=_STATUS)
    home = parser.add_argument_group("where the files are")
    home.add_argument("--workdir", metavar="DIR", help="a directory of this machine")
    home.add_argument("--task-file", metavar="FILE", help="the task's text; an ORS server has its own")
    home.add_argument("--submission", metavar="FILE", help="where the answer goes (default: DIR/submission.txt)")
    home.add_argument("--read-only", action="append", default=[], metavar="PATTERN", help="files never written; repeat")
    home.add_argument(
        "--left-out", action="append", default=[], metavar="PATTERN", help="what no snapshot keeps; repeat"
    )
    home.add_argument("--ors", metavar="URL", help="an Open Reward Standard server")
    home.add_argument("--task", metavar="ID", help="a task of the server")
    home.add_argument("--environment", default="rebench", metavar="NAME", help="of the server (default: %(default)s)")
    home.add_argument("--split", default="test", metavar="NAME", help="which the task is in (default: %(default)s)")
    home.add_argument("--token-variable", metavar="NAME", help="has the server's token")
    home.add_argument("--secret", action="append", default=[], metavar="NAME=VARIABLE", help="of the session; repeat")
    home.add_argument("--run", metavar="DIR", help="the run's own directory (default: a new one in mlab-runs)")
    model = parser.add_argument_group("models")
    model.add_argument("--model", metavar="NAME", help="the model of the steps")
    model.add_argument("--price", type=_price, metavar="IN,OUT", help="its dollars a million tokens")
    model.add_argument("--context-tokens", type=int, metavar="N", help="how much it reads and writes together")
    model.add_argument("--fast-model", metavar="NAME", help="a cheaper one for edits, understanding and summaries")
    model.add_argument("--fast-price", type=_price, metavar="IN,OUT", help="as --price")
    model.add_argument("--fast-context-tokens", type=int, metavar="N", help="as --context-tokens")
    model.add_argument("--max-output-tokens", type=int, default=8192, metavar="N", help="a reply's (default: 8192)")
    model.add_argument("--temperature", type=float, metavar="T", help="default: the server's")
    model.add_argument("--tools", choices=("auto", "native", "text"), default="auto", help="how actions are written")
    model.add_argument("--recent-steps", type=int, default=8, metavar="N", help="steps kept word for word (default: 8)")
    _add_access(parser, os.environ.get("OPENAI_BASE_URL") or _OPENAI)
    _add_limits(parser)
    return parser


def _add_access(parser: argparse.ArgumentParser, base_url: str | None) -> None:
    group = parser.add_argument_group("the models' server")
    group.add_argument("--base-url", default=base_url, metavar="URL", help="default: OPENAI_BASE_URL, else OpenAI's")
    group.add_argument(
        "--key-variable", default=KEY_VARIABLE, metavar="NAME", help="has the key (default: %(default)s)"
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits")
    group.add_argument("--max-steps", type=int, metavar="N", help="default: 50")
    group.add_argument("--max-time", dest="max_seconds", type=_seconds, metavar="T", help="such as 90m (default: 5h)")
    group.add_argument("--max-cost", dest="max_dollars", type=float, metavar="DOLLARS", help="default: no cap")
    group.add_argument("--max-tokens", type=int, metavar="N", help="of all calls together (default: no cap)")
    group.add_argument(
        "--script-time", dest="script_seconds", type=_seconds, metavar="T", help="a script's (default: 1h)"
    )


def _seconds(text: str) -> float:
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    if not re.fullmatch(f"(?:{_TIME.pattern})+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 5h, 90m, 30s or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in _TIME.findall(text))


def _price(text: str) -> tuple[float, float]:
    parts = text.split(",")
    try:
        prompt, completion = map(float, parts)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no price: write the dollars a million prompt tokens, a comma, those of completion tokens"
        ) from None
    return prompt, completion
