"""The command line: run (the default), ``resume``, ``show``."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, CycloptsError, Parameter
from pydantic import ValidationError

from mlab_agent import __version__
from mlab_agent.budget import duration
from mlab_agent.parts import check_clients
from mlab_agent.run import Run, RunSuspended, new_run_directory, settings_of
from mlab_agent.settings import (
    FILES,
    LIMITS,
    ChangeableSettings,
    RunSettings,
    SettingsError,
    read_only_patterns,
)
from mlab_agent.trace import MIN_SECRET_CHARS, TRACE_FILE, TraceError, read_trace
from mlab_agent.trace_view import one_line, pages
from mlab_agent.workspaces.files import WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mlab_agent.state import Outcome

_PR_SET_DUMPABLE = 4
_SUSPENDED = 4
_LIMITS = frozenset({"steps", "time", "cost", "tokens"})
_NO_SETTINGS = ChangeableSettings()

app = App(
    name="mlab-agent",
    help="The research agent of MLAgentBench, on a directory (--workdir) or at a task of an ORS server (--ors). "
    "Exit status: 0 after a final answer, 3 at a limit, 4 after SIGUSR1, 2 if the run cannot be made, 1 otherwise.",
    version=f"mlab-agent {__version__}",
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative=(), show_default=False, allow_repeating=True),
)
NoLiveOutput = Annotated[
    bool, Parameter(group=LIMITS, help="Do not show what scripts write while they run.")
]  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    try:
        status = app(list(arguments), result_action="return_value", exit_on_error=False, print_error=False)
    except (CycloptsError, ValidationError) as error:
        return _usage_error(f"error: {_problem(error)}; mlab-agent --help lists the options")
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
    return status or 0


@app.default
def run(
    *,
    settings: Annotated[RunSettings | None, Parameter(name="*")] = None,
    task_file: Annotated[
        Path | None, Parameter(group=FILES, help="The task's text; an ORS server has its own.")
    ] = None,
    read_only_files: Annotated[
        Path | None,
        Parameter(
            group=FILES,
            help="A file with patterns as --read-only, one a line (default: read_only_files.txt beside the task file, "
            "or in scripts of the directory).",
        ),
    ] = None,
    secret: Annotated[
        tuple[str, ...], Parameter(group=FILES, help="NAME=VARIABLE: a secret of the session; repeat.")
    ] = (),
    run: Annotated[Path | None, Parameter(group=FILES, help="The run's directory (default: in mlab-runs).")] = None,
    check: Annotated[bool, Parameter(help="Check options, keys and prices, and start nothing.")] = False,
    no_live_output: NoLiveOutput = False,
) -> int:
    """Work on a task."""
    given = settings or RunSettings()
    patterns = (*given.read_only, *read_only_patterns(read_only_files, task_file, given.workdir))
    secrets = dict(option.partition("=")[::2] for option in secret)
    made = given.model_copy(update={"read_only": patterns, "secrets": secrets}).checked()
    if check:
        check_clients(made, read_keys(made.key_variables))
        return 0
    name = made.task if made.ors else Path(made.workdir or "").name
    directory = run or new_run_directory(re.sub(r"\W+", "-", name or "run"))
    return _start(made, directory, task=_read_task(task_file), live=not no_live_output)


@app.command
def resume(
    directory: Annotated[Path, Parameter(name="RUN", help="The run's directory.")],
    /,
    *,
    settings: Annotated[ChangeableSettings, Parameter(name="*")] = _NO_SETTINGS,
    from_step: Annotated[
        int | None,
        Parameter(
            help="Resume from the state after this step (0: before the first): files, memory, time and steps. The "
            "later steps stay in the trace, and their cost counts. A server's attempts and hours are not undone."
        ),
    ] = None,
    no_live_output: NoLiveOutput = False,
) -> int:
    """Resume a run that was killed or has ended.

    A run at an ORS server resumes in the same session if the server still has it, otherwise in a new one with the files
    of the last snapshot; it says which.
    """
    changed = settings_of(directory).changed(settings)
    return _start(changed, directory, resume=True, from_step=from_step, live=not no_live_output)


@app.command
def show(
    trace: Annotated[Path, Parameter(name="TRACE", help="The file, or the run's directory.")],
    /,
    *,
    whole: Annotated[bool, Parameter(help="Truncate nothing.")] = False,
) -> int:
    """Show a trace as text."""
    for page in pages(read_trace(trace / TRACE_FILE if trace.is_dir() else trace), whole=whole):
        print(page)
    sys.stdout.flush()
    return 0


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
        with contextlib.suppress(OSError):  # the script goes on without a reader
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


def _problem(error: CycloptsError | ValidationError) -> str:
    cause = error if isinstance(error, ValidationError) else error.__cause__
    if isinstance(cause, ValidationError):
        return "; ".join(
            f"{'.'.join(map(str, item['loc']))}: {item['msg'].removeprefix('Value error, ')}" for item in cause.errors()
        )
    return " ".join(str(error).split()).removesuffix(".")


def _usage_error(text: str) -> int:
    print(f"mlab-agent: {text}", file=sys.stderr)
    return 2


def _read_task(file: Path | None) -> str | None:
    try:
        return file.read_text(encoding="utf-8", errors="replace") if file else None
    except OSError as error:
        raise SettingsError(f"the task file {file} cannot be read: {error.strerror}") from None
