"""The command line: run (the default), ``resume``, ``show``, ``files``, ``demo``."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from mlab_agent.budget import duration
from mlab_agent.demo import create_task, reply_to
from mlab_agent.fake_server import FakeServer
from mlab_agent.files_command import files
from mlab_agent.options import changed_settings, demo_parser, new_settings, resume_parser, run_parser
from mlab_agent.parts import check_clients
from mlab_agent.run import Run, RunSuspended, new_run_directory, settings_of
from mlab_agent.settings import ModelOptions, RunSettings, SettingsError
from mlab_agent.trace import MIN_SECRET_CHARS, TRACE_FILE, TraceError, read_trace
from mlab_agent.trace_view import one_line, pages
from mlab_agent.workspaces.files import WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mlab_agent.state import Outcome

_PR_SET_DUMPABLE = 4
_SUSPENDED = 4
_LIMITS = frozenset({"steps", "time", "cost", "tokens"})


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    commands: dict[str, Callable[[Sequence[str]], int]] = {
        "show": _show,
        "resume": _resume,
        "files": files,
        "demo": _demo,
    }
    command = commands.get(arguments[0]) if arguments else None
    try:
        return command(arguments[1:]) if command else _run(arguments)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, item['loc'])) or 'run'}: {item['msg']}" for item in error.errors())
        return _usage_error(problems)
    except (SettingsError, TraceError, WorkspaceError) as error:
        return _usage_error(str(error))
    except RunSuspended:
        print("mlab-agent: suspended; to go on with the run: mlab-agent resume RUN", file=sys.stderr)
        return _SUSPENDED
    except KeyboardInterrupt:
        print("mlab-agent: interrupted; to go on with a run: mlab-agent resume RUN", file=sys.stderr)
        return 1
    except BrokenPipeError:  # as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(arguments: Sequence[str]) -> int:
    parser = run_parser()
    options = parser.parse_args(arguments)
    if (options.workdir is None) == (options.ors is None):
        parser.error("give either --workdir with --task-file, or --ors with --task")
    if not options.model:
        parser.error("give --model NAME")
    settings = new_settings(options)
    name = options.task if options.ors else Path(options.workdir).resolve().name
    if options.check:
        check_clients(settings, read_keys(settings.key_variables))
        return 0
    directory = Path(options.run) if options.run else new_run_directory(re.sub(r"\W+", "-", name or "run"))
    return _start(settings, directory, task=_task(options.task_file), live=not options.no_live_output)


def _resume(arguments: Sequence[str]) -> int:
    options = resume_parser().parse_args(arguments)
    directory = Path(options.run)
    settings = changed_settings(settings_of(directory), options)
    return _start(settings, directory, resume=True, from_step=options.from_step, live=not options.no_live_output)


def _show(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("mlab-agent show", description="Show a trace as text.")
    parser.add_argument("trace", metavar="TRACE", help="the file, or the run's directory")
    parser.add_argument("--whole", action="store_true", help="truncate nothing")
    options = parser.parse_args(arguments)
    path = Path(options.trace)
    for page in pages(read_trace(path / TRACE_FILE if path.is_dir() else path), whole=options.whole):
        print(page)
    sys.stdout.flush()
    return 0


def _demo(arguments: Sequence[str]) -> int:
    options = demo_parser().parse_args(arguments)
    into = _unused(Path(options.into))
    create_task(into / "workspace")
    task = (into / "workspace" / "instructions.txt").read_text(encoding="utf-8")
    model = ModelOptions(name=options.model or "stand-in")
    settings = RunSettings(workdir=str(into / "workspace"), model=model, max_steps=30, max_seconds=900.0)
    if options.model:
        changed = {"base_url": options.base_url}
        if options.key_variable:
            changed["key_variable"] = options.key_variable
        return _start(settings.model_copy(update=changed), into / "run", task=task)
    with FakeServer(reply_to) as server:
        print("No --model: a stand-in on this machine plays one.", file=sys.stderr)
        settings = settings.model_copy(update={"base_url": server.url, "tools": "text"})
        return _start(settings, into / "run", task=task)


def _start(
    settings: RunSettings,
    directory: Path,
    *,
    task: str | None = None,
    resume: bool = False,
    from_step: int | None = None,
    live: bool = True,
) -> int:
    keys = read_keys(settings.key_variables)
    step = 0

    def watch(event: dict[str, Any]) -> None:
        nonlocal step
        step = event["step"] if event["kind"] == "rewind" else step + (event["kind"] == "observation")
        if line := one_line(event, step):
            print(line, file=sys.stderr, flush=True)

    def show_output(stream: str, line: str) -> None:
        with contextlib.suppress(OSError):  # the script goes on if nobody looks any more
            print(f"  {stream}: {line}", file=sys.stderr, flush=True)

    with Run(
        settings,
        directory,
        keys=keys,
        task=task,
        resume=resume,
        from_step=from_step,
        watch=watch,
        show_output=show_output if live else None,
    ) as run:
        step = run.state.steps
        print(f"The run is in {directory}", file=sys.stderr, flush=True)
        outcome = run.run()
        spending = run.state.spending
        spent = f"{run.state.steps} steps, {spending.calls} calls, {spending.tokens} tokens, {spending.cost}"
        print(f"{spent}, {duration(run.trace.elapsed())}; see: mlab-agent show {directory}", file=sys.stderr)
    return _report(outcome, directory)


def _report(outcome: Outcome, directory: Path) -> int:
    if outcome.reason == "final answer":
        print(outcome.answer)
        return 0
    print(f"mlab-agent: no final answer ({outcome.reason}): {outcome.detail.strip()}", file=sys.stderr)
    print(f"mlab-agent: to go on with this run: mlab-agent resume {shlex.quote(str(directory))}", file=sys.stderr)
    print(outcome.answer)
    return 3 if outcome.reason in _LIMITS else 1


def read_keys(variables: Sequence[str]) -> dict[str, str]:
    """Return the keys by their variables, without those that are not set; afterwards they are in no environment.

    No other process of this user can read the memory and the first environment of this one from now on.
    """
    with contextlib.suppress(OSError, AttributeError):  # works on Linux
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    values = {name: os.environ.pop(name, "").strip() for name in variables}
    keys = {name: value for name, value in values.items() if value}
    for name, value in list(os.environ.items()):
        if any(len(key) >= MIN_SECRET_CHARS and key in value for key in keys.values()):
            del os.environ[name]
    return keys


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
