"""A run: an agent put together from settings, new or resumed."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from mlab_agent.actions import Limits
from mlab_agent.agent import Agent, RunStopped
from mlab_agent.budget import Budget, Clock
from mlab_agent.journal import Journal
from mlab_agent.memory import MemoryLimits
from mlab_agent.models import Caps, Model, ModelSettings, Prices, known_context, known_prices
from mlab_agent.settings import ModelOptions, RunSettings
from mlab_agent.state import Outcome, RunState
from mlab_agent.trace import TRACE_FILE, Trace, TraceError, has_begun, read_trace
from mlab_agent.workspaces.files import WorkspaceError
from mlab_agent.workspaces.local import LocalWorkspace
from mlab_agent.workspaces.ors import OrsWorkspace
from mlab_agent.workspaces.run_script import kill_processes_of_run, mark_processes_of_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mlab_agent.workspaces.base import Workspace

_DEFAULT_CONTEXT = 100_000
_ALARM_DELAY_S = 1.0  # after the time limit, which the agent itself keeps in most cases


class SettingsError(Exception):
    """The settings of a run are wrong; the message says why and what to do."""


class Run:
    """A run with all its parts. Closing it ends what runs, and closes the trace."""

    def __init__(
        self,
        settings: RunSettings,
        directory: Path,
        *,
        key: str = "",
        task: str | None = None,
        resume: bool = False,
        watch: Callable[[dict[str, Any]], None] = lambda _event: None,
    ) -> None:
        """Open a run.

        Args:
            settings: of the run.
            directory: for its trace, snapshots and journal.
            key: of the model's server.
            task: the text of the task; None if the workspace, or the trace of a resumed run, has it.
            resume: whether to continue the trace.
            watch: called with every event.

        Raises:
            SettingsError: if the settings are wrong.
        """
        self.settings = settings
        self._resources = contextlib.ExitStack()
        try:
            self._build(directory.absolute(), key, task, resume=resume, watch=watch)
        except (WorkspaceError, TraceError) as error:
            self._resources.close()
            raise SettingsError(str(error)) from None
        except BaseException:
            self._resources.close()
            raise

    def _build(
        self,
        directory: Path,
        key: str,
        task: str | None,
        *,
        resume: bool,
        watch: Callable[[dict[str, Any]], None],
    ) -> None:
        settings = self.settings
        path = directory / TRACE_FILE
        if not resume and has_begun(path):
            raise SettingsError(f"{directory} has a run already; `mlab-agent resume {directory}` goes on with it")
        events = read_trace(path) if resume else []
        limits = MemoryLimits(recent_steps=settings.recent_steps, log_chars=settings.log_chars)
        caps = Caps(settings.max_dollars, settings.max_tokens)
        self.state = RunState.resumed(limits, caps, events) if resume else RunState.empty(limits, caps)
        if self.state.end and self.state.end["reason"] == "final answer":
            raise SettingsError(f"the run in {directory} has ended with its final answer")
        clock = Clock(self.state.elapsed)
        secrets = [secret for secret in (key, *_secrets(settings).values(), _token(settings)) if secret]
        self.trace = self._resources.enter_context(Trace(path, secrets, clock, watch))
        if resume:
            kill_processes_of_run(str(directory))
        mark_processes_of_run(str(directory))
        workspace, is_new = self._open_workspace(directory, secrets)
        self._resources.callback(workspace.close)
        self.budget = Budget(settings.max_steps, settings.max_seconds, self.state.spending, clock)
        model = self._model(settings.model, key)
        fast = model if settings.fast_model in {None, settings.model} else self._model(settings.fast_model, key)
        self.agent = Agent(
            workspace=workspace,
            model=model,
            fast_model=fast,
            state=self.state,
            trace=self.trace,
            budget=self.budget,
            journal=Journal(directory / "journal"),
            snapshots=directory / "snapshots",
            limits=Limits(execute_s=settings.script_seconds),
            tools=settings.tools,
            max_malformed=settings.max_malformed,
            new_workspace=is_new,
        )
        for client in {model, fast}:
            if record := self.state.dialects.get(client.settings.name):
                client.dialect.restore(record)
        if resume:
            self.agent.emit("resume", settings=settings.model_dump(mode="json"))
            return
        text = task or workspace.instructions
        if not text or not text.strip():
            raise SettingsError("there is no task: give a file with it")
        self.agent.emit("start", task=text, settings=settings.model_dump(mode="json"))

    def run(self) -> Outcome:
        """Run the agent to its end; after SIGTERM, SIGHUP and at the time limit an answer is handed in, too."""
        with _stop_on_signals(self.budget.seconds_left()):
            return self.agent.run()

    def close(self) -> None:
        """End what runs, and close the trace."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_workspace(self, directory: Path, secrets: list[str]) -> tuple[Workspace, bool]:
        """Return the workspace, and whether it is another one than that of the trace."""
        settings = self.settings
        if settings.ors is not None:
            assert settings.task is not None
            ors = OrsWorkspace(
                settings.ors,
                settings.task,
                environment=settings.environment,
                split=settings.split,
                token=_token(settings),
                secrets=_secrets(settings),
                state=directory / "home",
                read_only=settings.read_only,
                snapshot_excludes=settings.left_out,
            )
            return ors, not ors.joined
        assert settings.workdir is not None
        workdir = Path(settings.workdir).resolve()
        inside = directory.resolve().is_relative_to(workdir)
        own_files = [str(directory.resolve().relative_to(workdir))] if inside else []
        local = LocalWorkspace(
            workdir,
            state=directory / "home",
            read_only=settings.read_only,
            submission=Path(settings.submission) if settings.submission else None,
            secrets=secrets,
            snapshot_excludes=[*settings.left_out, *own_files],
        )
        return local, False

    def _model(self, options: ModelOptions | None, key: str) -> Model:
        assert options is not None
        settings = self.settings
        prices = Prices(*options.price) if options.price else known_prices(options.name)
        if prices is None and settings.max_dollars is not None:
            raise SettingsError(
                f"a cap on dollars needs prices, and those of {options.name} are not known: give --price IN,OUT"
            )
        model_settings = ModelSettings(
            name=options.name,
            base_url=settings.base_url,
            prices=prices,
            context_tokens=options.context_tokens or known_context(options.name) or _DEFAULT_CONTEXT,
            max_output_tokens=options.max_output_tokens,
            temperature=options.temperature,
            timeout_s=settings.call_timeout_s,
            attempts=settings.attempts,
            first_wait_s=settings.first_wait_s,
        )

        def emit(kind: str, fields: dict[str, Any]) -> None:
            self.agent.emit(kind, **fields)

        return Model(model_settings, key, self.state.spending, emit, self.budget.seconds_left)


def settings_of(directory: Path) -> RunSettings:
    """Return the settings that a run was last started with.

    Raises:
        SettingsError: if it has no trace with settings.
    """
    try:
        events = read_trace(directory / TRACE_FILE)
    except TraceError as error:
        raise SettingsError(str(error)) from None
    settings = [event["settings"] for event in events if event["kind"] in {"start", "resume"} and event["settings"]]
    if not settings:
        raise SettingsError(f"the trace in {directory} does not say how its run is made")
    return RunSettings.model_validate(settings[-1])


def new_run_directory(name: str) -> Path:
    """Return the path of a new directory below ``mlab-runs`` in the current directory."""
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%d-%H%M%S")
    for count in range(1, 1000):
        directory = Path("mlab-runs", f"{stamp}-{name}" + (f"-{count}" if count > 1 else ""))
        if not directory.exists():
            return directory
    raise AssertionError


def _token(settings: RunSettings) -> str | None:
    return os.environ.get(settings.token_variable) if settings.token_variable else None


def _secrets(settings: RunSettings) -> dict[str, str]:
    missing = [variable for variable in settings.secrets.values() if not os.environ.get(variable)]
    if missing:
        raise SettingsError(f"the session's secrets are to come from {', '.join(missing)}, which the environment lacks")
    return {name: os.environ[variable] for name, variable in settings.secrets.items()}


@contextlib.contextmanager
def _stop_on_signals(seconds: float | None) -> Iterator[None]:
    """Raise RunStopped at the first signal, or at the end of the time; in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stopped = False

    def stop(number: int, _frame: object) -> None:
        nonlocal stopped
        if not stopped:
            stopped = True
            raise RunStopped("time" if number == signal.SIGALRM else signal.Signals(number).name)

    signals = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM)
    previous = {number: signal.signal(number, stop) for number in signals}
    if seconds is not None:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.0) + _ALARM_DELAY_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in previous.items():
            signal.signal(number, handler)
