"""A run put together from its settings, new or resumed."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from mlab_agent.actions import Limits
from mlab_agent.agent import Agent, Outcome, Stopped
from mlab_agent.budget import Budget, Clock
from mlab_agent.homes import Home, HomeError
from mlab_agent.journal import Journal
from mlab_agent.leftovers import end_leftovers, mark_children
from mlab_agent.memory import MemoryLimits
from mlab_agent.models import Caps, Model, ModelSettings, Prices, known_context, known_prices
from mlab_agent.settings import ModelOptions, RunSettings
from mlab_agent.state import RunState
from mlab_agent.tracing import Trace, TraceError, has_begun, read_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["TRACE", "Session", "SettingsError", "new_run_directory", "settings_of"]

TRACE = "trace.jsonl"
_DEFAULT_CONTEXT = 100_000
_LATE_S = 1.0


class SettingsError(Exception):
    """A run cannot be made as it is asked for; the text says why and what to do."""


class Session:
    """A run with all that belongs to it. Closing it ends what runs and lets go of the trace."""

    def __init__(
        self,
        settings: RunSettings,
        run: Path,
        *,
        key: str = "",
        task: str | None = None,
        resume: bool = False,
        watch: Callable[[dict[str, Any]], None] = lambda _event: None,
    ) -> None:
        """Open a run.

        Args:
            settings: what it is made of.
            run: its directory: trace, snapshots, journal.
            key: of the model's server.
            task: what is to be done; None for what the home says, or for the trace when resumed.
            resume: whether the trace is to be continued.
            watch: told of every event.

        Raises:
            SettingsError: if it cannot be made.
        """
        self.settings = settings
        self._open = contextlib.ExitStack()
        try:
            self._make(settings, run.absolute(), key, task, resume=resume, watch=watch)
        except (HomeError, TraceError) as error:
            self._open.close()
            raise SettingsError(str(error)) from None
        except BaseException:
            self._open.close()
            raise

    def _make(
        self,
        settings: RunSettings,
        run: Path,
        key: str,
        task: str | None,
        *,
        resume: bool,
        watch: Callable[[dict[str, Any]], None],
    ) -> None:
        path = run / TRACE
        if not resume and has_begun(path):
            raise SettingsError(f"{run} has a run already; `mlab-agent resume {run}` goes on with it")
        events = read_trace(path) if resume else []
        limits = MemoryLimits(recent_steps=settings.recent_steps, log_chars=settings.log_chars)
        caps = Caps(settings.max_dollars, settings.max_tokens)
        self.state = RunState.resumed(limits, caps, events) if resume else RunState.empty(limits, caps)
        if self.state.end and self.state.end["reason"] == "final answer":
            raise SettingsError(f"the run in {run} has ended with its final answer")
        clock = Clock(self.state.elapsed)
        hidden = [each for each in (key, *_secrets(settings).values(), _token(settings)) if each]
        self.trace = self._open.enter_context(Trace(path, hidden, clock, watch))
        if resume:
            end_leftovers(str(run))
        mark_children(str(run))
        home, fresh = self._home(run, hidden)
        self._open.callback(home.close)
        self.budget = Budget(settings.max_steps, settings.max_seconds, self.state.spending, clock)
        model = self._model(settings.model, key)
        fast = model if settings.fast_model in {None, settings.model} else self._model(settings.fast_model, key)
        self.agent = Agent(
            home=home,
            model=model,
            fast_model=fast,
            state=self.state,
            trace=self.trace,
            budget=self.budget,
            journal=Journal(run / "journal"),
            snapshots=run / "snapshots",
            limits=Limits(execute_s=settings.script_seconds),
            tools=settings.tools,
            max_malformed=settings.max_malformed,
            fresh_home=fresh,
        )
        for each in {model, fast}:
            if record := self.state.dialects.get(each.settings.name):
                each.dialect.restore(record)
        if resume:
            self.agent.emit("resume", settings=settings.model_dump(mode="json"))
            return
        text = task or home.instructions
        if not text or not text.strip():
            raise SettingsError("there is no task: give a file with it")
        self.agent.emit("start", task=text, settings=settings.model_dump(mode="json"))

    def run(self) -> Outcome:
        """Run the agent to its end; SIGTERM, SIGHUP and the time limit end it with an answer, too."""
        with _signals(self.budget.seconds_left()):
            return self.agent.run()

    def close(self) -> None:
        """End what runs, and let go of the trace."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _home(self, run: Path, hidden: list[str]) -> tuple[Home, bool]:
        """Return the home, and whether it is another one than that of the trace."""
        settings = self.settings
        if settings.ors is not None:
            from mlab_agent.homes.ors import OrsHome  # noqa: PLC0415 - needs the extra `ors`

            assert settings.task is not None
            session = OrsHome(
                settings.ors,
                settings.task,
                environment=settings.environment,
                split=settings.split,
                token=_token(settings),
                secrets=_secrets(settings),
                state=run / "home",
                read_only=settings.read_only,
                left_out=settings.left_out,
            )
            return session, not session.joined
        from mlab_agent.homes.local import LocalHome  # noqa: PLC0415 - only one of the two is needed

        assert settings.workdir is not None
        workdir = Path(settings.workdir).resolve()
        ours = [str(run.resolve().relative_to(workdir))] if run.resolve().is_relative_to(workdir) else []
        local = LocalHome(
            workdir,
            state=run / "home",
            read_only=settings.read_only,
            submission=Path(settings.submission) if settings.submission else None,
            secrets=hidden,
            left_out=[*settings.left_out, *ours],
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
        chosen = ModelSettings(
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

        def note(kind: str, fields: dict[str, Any]) -> None:
            self.agent.emit(kind, **fields)

        return Model(chosen, key, self.state.spending, note, self.budget.seconds_left)


def settings_of(run: Path) -> RunSettings:
    """Return the settings that a run was last started with.

    Raises:
        SettingsError: if it has no trace with settings.
    """
    try:
        events = read_trace(run / TRACE)
    except TraceError as error:
        raise SettingsError(str(error)) from None
    known = [event["settings"] for event in events if event["kind"] in {"start", "resume"} and event["settings"]]
    if not known:
        raise SettingsError(f"the trace in {run} does not say how its run is made")
    return RunSettings.model_validate(known[-1])


def new_run_directory(name: str) -> Path:
    """Return a fresh directory below ``mlab-runs`` here."""
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%d-%H%M%S")
    for count in range(1, 1000):
        run = Path("mlab-runs", f"{stamp}-{name}" + (f"-{count}" if count > 1 else ""))
        if not run.exists():
            return run
    raise AssertionError


def _token(settings: RunSettings) -> str | None:
    return os.environ.get(settings.token_variable) if settings.token_variable else None


def _secrets(settings: RunSettings) -> dict[str, str]:
    missing = [variable for variable in settings.secrets.values() if not os.environ.get(variable)]
    if missing:
        raise SettingsError(f"the session's secrets are to come from {', '.join(missing)}, which the environment lacks")
    return {name: os.environ[variable] for name, variable in settings.secrets.items()}


@contextlib.contextmanager
def _signals(seconds: float | None) -> Iterator[None]:
    """Turn signals, and the end of the time, into Stopped, once; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stopped = False

    def stop(number: int, _frame: object) -> None:
        nonlocal stopped
        if not stopped:
            stopped = True
            raise Stopped("time" if number == signal.SIGALRM else signal.Signals(number).name)

    handled = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM)
    before = {number: signal.signal(number, stop) for number in handled}
    if seconds is not None:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.0) + _LATE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
