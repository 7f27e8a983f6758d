"""A run: an agent put together from settings, new or resumed."""

from __future__ import annotations

import contextlib
import datetime as dt
import signal
import threading
import time
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from mlab_agent.actions import Limits
from mlab_agent.agent import Agent, RunStopped
from mlab_agent.budget import Budget
from mlab_agent.clock import Clock, Waits, files_for_waits
from mlab_agent.memory import MemoryLimits
from mlab_agent.models import Caps
from mlab_agent.parts import make_clients, open_workspace, server_secrets
from mlab_agent.settings import RunSettings, SettingsError
from mlab_agent.state import REWIND, Outcome, RunState, histories, until_step
from mlab_agent.trace import TRACE_FILE, Trace, has_begun, read_trace
from mlab_agent.workspaces.scripts import end_processes_of_run
from mlab_agent.workspaces.snapshots import STORE, Store, git_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mlab_agent.workspaces.base import ShowOutput

_ALARM_DELAY_S = 1.0  # after the time limit, which the agent itself keeps in most cases
_REPEATED_SIGNAL_S = 1.0  # shells, timeout and npm send a signal twice


class RunSuspended(BaseException):
    """The run was told by SIGUSR1 to stop for now: nothing is handed in, and a server's session stays open."""


class Run:
    """A run with all its parts. Closing it ends what runs, and closes the trace."""

    def __init__(
        self,
        settings: RunSettings,
        directory: Path,
        *,
        keys: Mapping[str, str] = MappingProxyType({}),
        task: str | None = None,
        resume: bool = False,
        from_step: int | None = None,
        watch: Callable[[dict[str, Any]], None] = lambda _event: None,
        show_output: ShowOutput | None = None,
    ) -> None:
        """Open a run.

        Args:
            settings: of the run.
            directory: for its trace and its snapshots.
            keys: of the models' servers, by the variables that they come from.
            task: the text of the task; None if the workspace, or the trace of a resumed run, has it.
            resume: whether to continue the trace.
            from_step: the step after which to continue; None for the last one. The later ones are set aside.
            watch: called with every event.
            show_output: called with the stream and each line that a script writes, while it runs where that can be.

        Raises:
            SettingsError: if the settings are wrong.
            TraceError: if the trace cannot be read or written.
            WorkspaceError: if the workspace cannot be opened.
        """
        self.settings = settings
        directory = directory.absolute()
        past = self._past(directory, resume=resume)
        self.state, rewind = self._resumed_state(past, from_step)
        if self.state.end and self.state.end["reason"] == "final answer":
            raise SettingsError(
                f"the run in {directory} has ended with its final answer; --from-step N goes back to an earlier step"
            )
        with contextlib.ExitStack() as resources:
            self._open(directory, keys, resources, watch, show_output, resume=resume)
            self._begin(task, rewind, resume=resume)
            self._resources = resources.pop_all()
        self.agent.workspace.left_open = False

    @staticmethod
    def _past(directory: Path, *, resume: bool) -> list[list[dict[str, Any]]]:
        """Return the histories of the run that is to be resumed."""
        git_program()
        path = directory / TRACE_FILE
        if not resume and has_begun(path):
            raise SettingsError(f"{directory} has a run already; `mlab-agent resume {directory}` goes on with it")
        past = histories(read_trace(path)) if resume else []
        if any(event["kind"] == "snapshot" for event in chain(*past)) and not Store(directory / STORE).exists:
            raise SettingsError(
                f"the run in {directory} has no snapshots that this version can read: an older version of mlab-agent "
                "made it; start a new run"
            )
        return past

    def _open(
        self,
        directory: Path,
        keys: Mapping[str, str],
        resources: contextlib.ExitStack,
        watch: Callable[[dict[str, Any]], None],
        show_output: ShowOutput | None,
        *,
        resume: bool,
    ) -> None:
        """Open the trace, the clients and the workspace, and put the agent together."""
        settings = self.settings
        clock = Clock(self.state.elapsed)
        secrets = [*keys.values(), *server_secrets(settings)]
        self.trace = resources.enter_context(Trace(directory / TRACE_FILE, secrets, clock, watch))
        end_processes_of_run(str(directory))
        self.budget = Budget(settings.max_steps, settings.max_seconds, self.state.spending, clock)
        waits = Waits(clock, files_for_waits(directory), lambda wait: self._note("wait", **wait), self.trace.redacted)
        left = self.budget.seconds_left

        def emit(kind: str, fields: dict[str, Any]) -> None:
            self.agent.emit(kind, **fields)

        def report(text: str) -> None:
            self._note("server", text=text)

        clock.stop()  # what a client imports takes a second, or several
        clients = make_clients(settings, keys, self.state.spending, emit, left, waits=waits)
        clock.go_on()
        workspace, self._session = open_workspace(settings, directory, self.trace, secrets, report, waits=waits)
        workspace.left_open = self._session == "same"  # a resume that fails takes nothing from the run
        resources.callback(workspace.close)
        if show_output is not None:
            workspace.show_output = lambda stream, line: show_output(stream, self.trace.redacted(line))
        self.agent = Agent(
            workspace=workspace,
            clients=clients,
            state=self.state,
            trace=self.trace,
            budget=self.budget,
            limits=Limits(execute_s=settings.script_seconds),
            tools=settings.tools,
            max_malformed=settings.max_malformed,
            repeat_remark=settings.repeat_remark,
            new_workspace=self._session == "new" and resume,
        )
        for client in set(clients):
            if record := self.state.dialects.get(client.settings.name):
                client.dialect.restore(record)

    def _begin(self, task: str | None, rewind: dict[str, Any] | None, *, resume: bool) -> None:
        """Write the first events."""
        stored = self.settings.model_dump(mode="json")
        if rewind is not None:
            self.agent.emit(REWIND, **rewind, session=self._session)
        if resume:
            self.agent.emit("resume", settings=stored, session=self._session)
            return
        text = task or self.agent.workspace.instructions
        if not text or not text.strip():
            raise SettingsError("there is no task: give a file with it")
        self.agent.begin(text, stored)

    def _resumed_state(
        self, past: Sequence[list[dict[str, Any]]], from_step: int | None
    ) -> tuple[RunState, dict[str, Any] | None]:
        """Return the state to go on from; for an earlier step also what the trace is to say about going back."""
        limits = MemoryLimits(recent_steps=self.settings.recent_steps, log_chars=self.settings.log_chars)
        caps = Caps(self.settings.max_dollars, self.settings.max_tokens)
        if not past:
            return RunState.empty(limits, caps), None
        state = RunState.resumed(limits, caps, past[-1])
        if from_step is None:
            return state, None
        try:
            kept = until_step(past[-1], from_step)
        except ValueError as error:
            raise SettingsError(str(error)) from None
        earlier = RunState.resumed(limits, caps, kept)
        if earlier.handed_in is not None:
            raise SettingsError(f"step {from_step} is the final answer; go back to the one before, {from_step - 1}")
        earlier.spending.restore(state.spending.record())
        rewind = {"step": from_step, "number": len(past), "spent": state.spending.record()}
        return earlier, rewind

    def _note(self, kind: str, **fields: object) -> None:
        """Write to the trace that a server is away or back, or a wait, if the trace has begun."""
        if self.state.task:
            self.trace.add(kind, **fields)

    def run(self) -> Outcome:
        """Run the agent to its end; after SIGTERM, SIGHUP and at the time limit an answer is handed in, too.

        Raises:
            KeyboardInterrupt: at another signal meanwhile; a session of a server is left open then, for a resumed run.
            RunSuspended: at SIGUSR1; the session is left open, too.
        """
        workspace = self.agent.workspace
        workspace.left_open = True
        with _stop_on_signals(self.budget.seconds_left, lambda: self.agent.ending):
            outcome = self.agent.run()
        workspace.left_open = False
        return outcome

    def close(self) -> None:
        """End what runs, and close the trace."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def settings_of(directory: Path) -> RunSettings:
    """Return the settings that a run was last started with.

    Raises:
        SettingsError: if it has no trace with settings.
    """
    settings = [event["settings"] for event in read_trace(directory / TRACE_FILE) if event.get("settings")]
    if not settings:
        raise SettingsError(f"{directory / TRACE_FILE} does not say how its run is made")
    return RunSettings.model_validate(settings[-1])


def new_run_directory(name: str) -> Path:
    """Return the path of a new directory below ``mlab-runs`` in the current directory."""
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%d-%H%M%S")
    for count in range(1, 1000):
        directory = Path("mlab-runs", f"{stamp}-{name}" + (f"-{count}" if count > 1 else ""))
        if not directory.exists():
            return directory
    raise AssertionError


@contextlib.contextmanager
def _stop_on_signals(seconds_left: Callable[[], float | None], is_ending: Callable[[], bool]) -> Iterator[None]:
    """Raise RunStopped at the first signal or the end of the time, then KeyboardInterrupt; in the main thread only.

    A run that is ending already is not stopped by the first.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stopped_at: float | None = None

    def stop(number: int, _frame: object) -> None:
        nonlocal stopped_at
        if number == signal.SIGALRM and (left := seconds_left() or 0.0) > 0:  # it has waited meanwhile
            _set_alarm(left)
            return
        if stopped_at is None:
            stopped_at = time.monotonic()
            if is_ending():
                return
            is_time = number == signal.SIGALRM
            raise RunStopped("time" if is_time else signal.Signals(number).name, "time" if is_time else "stopped")
        if number != signal.SIGALRM and time.monotonic() - stopped_at > _REPEATED_SIGNAL_S:
            raise KeyboardInterrupt

    def suspend(_number: int, _frame: object) -> None:
        if stopped_at is None:
            raise RunSuspended

    signals = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM)
    previous = {number: signal.signal(number, stop) for number in signals}
    previous[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, suspend)
    _set_alarm(seconds_left())
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in previous.items():
            signal.signal(number, handler)


def _set_alarm(seconds_left: float | None) -> None:
    if seconds_left is not None:
        signal.setitimer(signal.ITIMER_REAL, max(seconds_left, 0.0) + _ALARM_DELAY_S)
