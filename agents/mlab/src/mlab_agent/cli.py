"""The command line: run (the default), ``resume``, ``show``, ``demo``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from mlab_agent.api_key import KEY_VARIABLE, read_key
from mlab_agent.budget import duration
from mlab_agent.demo import create_task, reply_to
from mlab_agent.fake_server import FakeServer
from mlab_agent.run import Run, SettingsError, new_run_directory, settings_of
from mlab_agent.settings import ModelOptions, RunSettings
from mlab_agent.trace import TRACE_FILE, TraceError, read_trace
from mlab_agent.trace_view import one_line, pages
from mlab_agent.workspaces.run_script import hide_this_process

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mlab_agent.state import Outcome

_OPENAI_URL = "https://api.openai.com/v1"
_LIMITS = frozenset({"steps", "time", "cost", "tokens"})
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|m|s)(?:ours?|ays?|in(?:utes?)?|ec(?:onds?)?)?\s*")
_CHANGEABLE_SETTINGS = ("base_url", "max_steps", "max_seconds", "max_dollars", "max_tokens", "script_seconds")

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
        problems = "; ".join(f"{'.'.join(map(str, item['loc'])) or 'run'}: {item['msg']}" for item in error.errors())
        return _usage_error(problems)
    except (SettingsError, TraceError) as error:
        return _usage_error(str(error))


def _run(arguments: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.workdir is None) == (options.ors is None):
        parser.error("give either --workdir with --task-file, or --ors with --task")
    if not options.model:
        parser.error("give --model NAME")
    key = read_key(options.key_variable)
    name = options.task if options.ors else Path(options.workdir).resolve().name
    directory = Path(options.run) if options.run else new_run_directory(re.sub(r"\W+", "-", name or "run"))
    return _start(_settings(options), directory, key, task=_task(options.task_file))


def _resume(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("mlab-agent resume", description="Go on with a run that was killed or has ended.")
    parser.add_argument("run", metavar="RUN", help="the run's directory")
    _add_limits(parser)
    _add_access(parser, None)
    options = parser.parse_args(arguments)
    key = read_key(options.key_variable)
    settings = _changed(settings_of(Path(options.run)), options)
    return _start(settings, Path(options.run), key, resume=True)


def _show(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("mlab-agent show", description="Show a trace as text.")
    parser.add_argument("trace", metavar="TRACE", help="the file, or the run's directory")
    parser.add_argument("--whole", action="store_true", help="truncate nothing")
    options = parser.parse_args(arguments)
    path = Path(options.trace)
    try:
        for page in pages(read_trace(path / TRACE_FILE if path.is_dir() else path), whole=options.whole):
            print(page)
        sys.stdout.flush()
    except BrokenPipeError:  # as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _demo(arguments: Sequence[str]) -> int:
    text = "Work on a small task: with a stand-in for a model, or with --model NAME and its key."
    parser = argparse.ArgumentParser("mlab-agent demo", description=text)
    parser.add_argument("--into", default="mlab-demo", metavar="DIR", help="a new directory (default: %(default)s)")
    parser.add_argument("--model", metavar="NAME", help="a real model instead of the stand-in")
    _add_access(parser, os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL)
    options = parser.parse_args(arguments)
    into = _unused(Path(options.into))
    create_task(into / "workspace")
    task = (into / "workspace" / "instructions.txt").read_text(encoding="utf-8")
    model = ModelOptions(name=options.model or "stand-in")
    settings = RunSettings(workdir=str(into / "workspace"), model=model, max_steps=30, max_seconds=900.0)
    if options.model:
        settings = settings.model_copy(update={"base_url": options.base_url})
        return _start(settings, into / "run", read_key(options.key_variable), task=task)
    with FakeServer(reply_to) as server:
        print("No --model: a stand-in on this machine plays one.", file=sys.stderr)
        settings = settings.model_copy(update={"base_url": server.url, "tools": "text"})
        return _start(settings, into / "run", "", task=task)


def _start(settings: RunSettings, directory: Path, key: str, *, task: str | None = None, resume: bool = False) -> int:
    if not key and settings.base_url.rstrip("/") == _OPENAI_URL:
        return _usage_error(f"{_OPENAI_URL} needs a key: set {KEY_VARIABLE}, or give --base-url for another server")
    hide_this_process()
    step = 0

    def watch(event: dict[str, Any]) -> None:
        nonlocal step
        step += event["kind"] == "observation"
        if line := one_line(event, step):
            print(line, file=sys.stderr, flush=True)

    with Run(settings, directory, key=key, task=task, resume=resume, watch=watch) as run:
        step = run.state.steps
        print(f"The run is in {directory}", file=sys.stderr, flush=True)
        outcome = run.run()
        spending = run.state.spending
        spent = f"{run.state.steps} steps, {spending.calls} calls, {spending.tokens} tokens"
        dollars = f", ${spending.dollars:.4f}" if spending.dollars else ""
        print(f"{spent}{dollars}, {duration(run.trace.elapsed())}; see: mlab-agent show {directory}", file=sys.stderr)
    return _report(outcome)


def _report(outcome: Outcome) -> int:
    if outcome.reason == "final answer":
        print(outcome.answer)
        return 0
    print(f"mlab-agent: no final answer ({outcome.reason}): {outcome.detail.strip()}", file=sys.stderr)
    print(outcome.answer)
    return 3 if outcome.reason in _LIMITS else 1


def _usage_error(text: str) -> int:
    print(f"mlab-agent: {text}", file=sys.stderr)
    return 2


def _task(file: str | None) -> str | None:
    if file is None:
        return None
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SettingsError(f"the task file {file} cannot be read: {error.strerror}") from None


def _unused(directory: Path) -> Path:
    for count in range(1, 1000):
        candidate = directory if count == 1 else directory.with_name(f"{directory.name}-{count}")
        if not candidate.exists():
            return candidate
    raise AssertionError


def _settings(options: argparse.Namespace) -> RunSettings:
    model = ModelOptions(
        name=options.model,
        price=options.price,
        context_tokens=options.context_tokens,
        max_output_tokens=options.max_output_tokens,
        temperature=options.temperature,
    )
    differences = {
        "name": options.fast_model,
        "price": options.fast_price,
        "context_tokens": options.fast_context_tokens,
    }
    fast = model.model_copy(update=differences) if options.fast_model else None
    settings = RunSettings(
        workdir=options.workdir and str(Path(options.workdir).resolve()),
        submission=options.submission and str(Path(options.submission).resolve()),
        read_only=tuple(options.read_only),
        left_out=tuple(options.left_out),
        ors=options.ors,
        task=options.task,
        environment=options.environment,
        split=options.split,
        token_variable=options.token_variable,
        secrets=dict(option.partition("=")[::2] for option in options.secret),
        model=model,
        fast_model=fast,
        tools=options.tools,
        recent_steps=options.recent_steps,
    )
    return _changed(settings, options)


def _changed(settings: RunSettings, options: argparse.Namespace) -> RunSettings:
    """Return settings with the limits and the server of the command line."""
    changed = {name: getattr(options, name) for name in _CHANGEABLE_SETTINGS if getattr(options, name) is not None}
    return RunSettings.model_validate({**settings.model_dump(), **changed})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("mlab-agent", usage=_USAGE, epilog=_STATUS)
    files = parser.add_argument_group("where the files are")
    files.add_argument("--workdir", metavar="DIR", help="a directory of this machine")
    files.add_argument("--task-file", metavar="FILE", help="the task's text; an ORS server has its own")
    files.add_argument("--submission", metavar="FILE", help="where the answer goes (default: DIR/submission.txt)")
    files.add_argument(
        "--read-only", action="append", default=[], metavar="PATTERN", help="files never written; repeat"
    )
    files.add_argument(
        "--left-out", action="append", default=[], metavar="PATTERN", help="what no snapshot keeps; repeat"
    )
    files.add_argument("--ors", metavar="URL", help="an Open Reward Standard server")
    files.add_argument("--task", metavar="ID", help="a task of the server")
    files.add_argument("--environment", default="rebench", metavar="NAME", help="of the server (default: %(default)s)")
    files.add_argument("--split", default="test", metavar="NAME", help="which the task is in (default: %(default)s)")
    files.add_argument("--token-variable", metavar="NAME", help="has the server's token")
    files.add_argument("--secret", action="append", default=[], metavar="NAME=VARIABLE", help="of the session; repeat")
    files.add_argument("--run", metavar="DIR", help="the run's own directory (default: a new one in mlab-runs)")
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
    _add_access(parser, os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL)
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
    if not re.fullmatch(f"(?:{_DURATION.pattern})+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 5h, 90m, 30s or 1h30m")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _DURATION.findall(text))


def _price(text: str) -> tuple[float, float]:
    parts = text.split(",")
    try:
        prompt, completion = map(float, parts)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no price: write the dollars a million prompt tokens, a comma, those of completion tokens"
        ) from None
    return prompt, completion
