"""One run of the agent in the sample that runs: its parts, and its end."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import transcript
from inspect_ai.model import Model, ModelOutput, get_model, model_roles
from inspect_ai.util import LimitExceededError, SandboxUnavailableError, StoreModel, sandbox, store_as

from mlab_agent.actions import Limits
from mlab_agent.agent import Agent, RunStopped
from mlab_agent.clock import Clock
from mlab_agent.memory import MemoryLimits
from mlab_agent.models import Caps
from mlab_agent.parts import Clients
from mlab_agent.state import RunState
from mlab_agent.trace import TRACE_FILE, Trace
from mlab_agent.workspaces.files import WorkspaceError
from re_bench_inspect.mlab.answers import default_answer
from re_bench_inspect.mlab.directories import new_run_directory
from re_bench_inspect.mlab.files import InspectFiles
from re_bench_inspect.mlab.limits import SampleBudget, limit_reached, seconds_left
from re_bench_inspect.mlab.loop_calls import LoopCalls
from re_bench_inspect.mlab.model import InspectModel
from re_bench_inspect.mlab.steps import Steps
from re_bench_inspect.mlab.workspace import InspectWorkspace
from re_bench_inspect.samples import session_of_sample

if TYPE_CHECKING:
    from inspect_ai.agent import AgentState

    from mlab_agent.state import Outcome
    from re_bench_inspect.mlab.answers import Answer
    from re_bench_inspect.mlab.options import MlabOptions

_REASONS = {"token": "tokens", "cost": "cost", "time": "time", "working": "time"}
Event = dict[str, Any]
_ERRORS = frozenset({"failure", "model", "workspace"})


class MlabStore(StoreModel):
    """What a sample's log keeps of its run."""

    directory: str = ""
    """The run's directory, with its whole trace: ``mlab-agent show DIRECTORY``."""
    reason: str = ""
    """Why the run ended."""
    steps: int = 0


class Run:
    """A run. Its agent works in a thread; models and sandbox are called in the task of the sample."""

    def __init__(self, options: MlabOptions, state: AgentState) -> None:
        """Make the run's directory, and find its models.

        Args:
            options: of the agent.
            state: has the task in its messages; gets those of the run, and its answer.

        Raises:
            PrerequisiteError: if the run's directory cannot be written.
        """
        self._options = options
        self._state = state
        self._task = "\n\n".join(message.text for message in state.messages if message.text)
        self._sandbox = sandbox(options.sandbox)
        self._seconds = seconds_left()
        self._directory = new_run_directory(options.trace_directory)
        self._loop = LoopCalls(_stopped)
        self._run = RunState.empty(MemoryLimits(recent_steps=options.recent_steps), Caps())
        main = self._client(get_model())
        fast = self._client(_other_model(options.fast_model, "fast", main.model))
        edit = self._client(_other_model(options.edit_model, "edit", fast.model))
        self._clients = Clients(main, fast, edit)
        self._steps = Steps(state, main)
        self._core: Agent | None = None
        self._untaken: deque[Event] = deque()
        """Events of the trace that the transcript does not have yet."""

    async def work(self) -> None:
        """Run the agent to its end; an exception of Inspect, such as at a limit, comes through with the trace whole.

        Raises:
            RuntimeError: if something of ours or the workspace failed, or the model gave no reply.
        """
        store_as(MlabStore).directory = str(self._directory)
        transcript().info(f"The run is in `{self._directory}`", source="mlab")
        try:
            outcome = await self._loop.run(self._work)
        except WorkspaceError as error:
            raise PrerequisiteError(f"mlab cannot work in this sandbox: {error}") from None
        finally:
            await self._steps.close()
            for event in self._untaken:
                self._steps.show(event)
            kept = store_as(MlabStore)
            kept.steps, kept.reason = self._run.steps, self._run.end["reason"] if self._run.end else ""
        if outcome.reason in _ERRORS:
            raise RuntimeError(f"mlab: {outcome.reason}: {outcome.detail.strip()}")

    def _work(self) -> Outcome:
        """Do what is done in the thread."""
        clock, options = Clock(), self._options
        with Trace(self._directory / TRACE_FILE, (), clock, self._watch) as trace:
            budget = SampleBudget(options.max_steps, self._seconds, self._run.spending, clock, self._loop, self._state)
            core = self._core = Agent(
                workspace=self._open_workspace(),
                clients=self._clients,
                state=self._run,
                trace=trace,
                budget=budget,
                snapshots=False,
                limits=Limits(execute_s=options.script_seconds),
                tools=options.tools,
                max_malformed=options.max_malformed,
                repeat_remark=options.repeat_remark,
            )
            core.emit("start", task=self._task, settings=None)
            return core.run()

    def _open_workspace(self) -> InspectWorkspace:
        options, state = self._options, self._state
        # a session whose hours are over still gives its final score
        refusals = (SandboxUnavailableError,) if self._loop.call(_has_session) else ()
        if options.answer:
            answer, offered = options.answer, options.score is not False
        else:
            answer, offered = self._loop.call(partial(_default_answer, state, options.score))
        return InspectWorkspace(
            InspectFiles(self._sandbox, self._loop, options.directory, refusals),
            self._loop,
            answer=answer,
            scores=offered,
            hand_in=self._hand_in,
            state=self._directory,
            python=options.python,
            read_only=options.read_only,
        )

    async def _hand_in(self, answer: str) -> None:
        self._state.output = ModelOutput.from_content(self._clients.model.settings.name, answer)

    def _client(self, model: Model) -> InspectModel:
        options = self._options
        return InspectModel(
            model,
            self._loop,
            self._run.spending,
            self._emit,
            cache=options.cache,
            context_tokens=options.context_tokens,
            max_output_tokens=options.max_output_tokens,
        )

    def _emit(self, kind: str, fields: dict[str, Any]) -> None:
        assert self._core is not None
        self._core.emit(kind, **fields)

    def _watch(self, event: Event) -> None:
        self._untaken.append(event)
        self._loop.post(self._take)

    async def _take(self) -> None:
        await self._steps.take(self._untaken.popleft())


def _other_model(chosen: str | Model | None, role: str, default: Model) -> Model:
    """Return a model by its name, or that of a role."""
    if chosen is None:
        return get_model(role=role, default=default) if role in model_roles() else default
    if isinstance(chosen, str) and chosen in model_roles():
        return get_model(role=chosen)
    return get_model(chosen)


async def _has_session() -> bool:
    return session_of_sample() is not None


async def _default_answer(state: AgentState, wanted: bool | None) -> tuple[Answer, bool]:
    return default_answer(state, wanted=wanted)


def _stopped(error: BaseException) -> RunStopped:
    """Return why the agent is to end."""
    if isinstance(error, LimitExceededError):
        return RunStopped(f"Inspect: {error.message}", _REASONS.get(error.type, "stopped"))
    if isinstance(error, Exception):
        return RunStopped(f"{type(error).__name__}: {error}")
    return RunStopped("Inspect ends the sample", limit_reached())
