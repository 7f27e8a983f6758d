"""The tasks of re-bench as tasks of Inspect: all that are discovered here, also those of other packages."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import inspect_ai
from inspect_ai import Epochs
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.agent import AgentState, react
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.util import SandboxEnvironmentSpec
from pydantic import ValidationError

from re_bench.errors import ReBenchError
from re_bench.task.discovery import find_tasks
from re_bench_inspect.episode import answer, bash, current_session, reward
from re_bench_inspect.sandboxes import SandboxConfig, problems_of
from re_bench_inspect.sessions import settings_of
from re_bench_server.catalog import build_catalog
from re_bench_server.prompt import prompt
from re_bench_server.shell.shell import WORKSPACE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspect_ai.agent import Agent

    from re_bench.task.discovery import TaskFolder
    from re_bench_server.catalog import ServedTask

_GO_ON = (
    "Go on with the task. When there is nothing left to improve, call answer with get_final_score=true, which ends the "
    "episode with the score of all attempts."
)
_HOUR_S = 3600
PREFIX = "re_bench/"
"""What the names of tasks and agents begin with: ``inspect eval re_bench/triton_cumsum``."""

Function = TypeVar("Function", bound="Callable[..., object]")
Build = Callable[..., inspect_ai.Task]


def without_package(function: Function) -> Function:
    """Have Inspect's decorator register a function by the name that it is given, with no package's name before it.

    Inspect takes the package from the function's module, which cannot be ``re_bench`` where the core is installed
    editable: its distribution has another name. Functions of no installed package get nothing before their names.
    """
    function.__module__ = builtins.__name__
    return function


def register_task(name: str, **attributes: Any) -> Callable[[Build], Build]:
    """Return the decorator that registers a function as ``re_bench/NAME``, whose errors are shown without a traceback.

    Args:
        name: the task's name.
        attributes: of the task, as Inspect's own decorator takes them.
    """

    def register(build: Build) -> Build:
        @functools.wraps(build)
        def checked(*arguments: Any, **options: Any) -> inspect_ai.Task:
            try:
                return build(*arguments, **options)
            except ReBenchError as error:
                raise PrerequisiteError(f"{PREFIX}{name}: {error}") from None
            except ValidationError as error:
                raise PrerequisiteError(f"{PREFIX}{name}: {problems_of(error)}") from None

        registered: Build = inspect_ai.task(name=PREFIX + name, **attributes)(without_package(checked))
        return registered

    return register


def words(values: str | Sequence[str]) -> list[str]:
    """Return the words of an option; Inspect's command line makes a list of what has commas in it."""
    parts = values.split(",") if isinstance(values, str) else map(str, values)
    return [part.strip() for part in parts if part.strip()]


def make_task(task: TaskFolder) -> Build:
    """Return the function that Inspect calls for a task of re-bench, registered as ``re_bench/NAME``."""

    def build(
        profile: str = "auto",
        hours: float = 8.0,
        attempts: int = 100,
        network: str = "none",
        allow: str | list[str] = "",
    ) -> inspect_ai.Task:
        config = SandboxConfig(
            task=task.manifest.id,
            profile=profile,
            network=network,  # type: ignore[arg-type] # pydantic checks what the command line gives
            allow=tuple(words(allow)),
            hours=hours,
            max_attempts=attempts,
        )
        return task_of(config)

    build.__name__ = build.__qualname__ = task.name
    build.__doc__ = f"""{task.manifest.title}.

    Args:
        profile: auto, cpu, gpu or paper: the size of the task
        hours: working hours in which commands can run
        attempts: how many attempts are scored
        network: none, proxy or open: the sandbox's network
        allow: hosts that the proxy lets through, with commas between them
    """
    return register_task(task.name)(build)


def task_of(config: SandboxConfig) -> inspect_ai.Task:
    """Return the task of Inspect for a configuration: one sample, whose sandbox is a session.

    Raises:
        UsageError: if the task cannot be served here in this profile, or the settings contradict one another.
        ManifestError: if its manifest is malformed.
    """
    assert config.task is not None
    settings = settings_of(config, Path(), {config.task})
    (served,) = build_catalog(config.profile, (config.task,)).by_id.values()
    manifest = served.manifest
    stand_in = manifest.model is not None and not manifest.asks_model(served.profile_name)
    chosen = config.model_copy(update={"profile": served.profile_name})
    sample = Sample(
        id=served.task.name,
        input=prompt(served, settings, WORKSPACE, stand_in=stand_in),
        sandbox=SandboxEnvironmentSpec("rebench", chosen),
        metadata=_metadata(served, stand_in=stand_in),
    )
    return inspect_ai.Task(
        dataset=MemoryDataset([sample], name=served.task.name),
        solver=tool_agent(),
        scorer=reward(),
        epochs=Epochs(1, []),  # no mean over epochs before the metrics: each run counts
        working_limit=round(config.hours * _HOUR_S),
        version=manifest.version,
        display_name=manifest.title,
        metadata={"profile": served.profile_name},
        tags=["re-bench", served.profile_name],
    )


def tool_agent() -> Agent:
    """Return the agent that runs unless another is chosen: Inspect's ReAct loop with the tools of a session."""

    async def go_on(state: AgentState) -> bool | str:
        if current_session().record.state == "finished":
            return False
        return True if state.output.message.tool_calls else _GO_ON

    return react(prompt=None, tools=[bash(), answer()], submit=False, on_continue=go_on, truncation="auto")


def _metadata(served: ServedTask, *, stand_in: bool) -> dict[str, Any]:
    """Return what a reader of scores has to know of the scale."""
    manifest, anchors = served.manifest, served.manifest.anchors(served.profile_name)
    return {
        "task": served.task.name,
        "task_version": str(manifest.version),
        "profile": served.profile_name,
        "unit": manifest.unit,
        "direction": manifest.direction,
        "aggregation": manifest.aggregation,
        "starting": anchors.starting if anchors else None,
        "reference": anchors.reference if anchors else None,
        "modelled": served.profile.modelled,
        "model_stand_in": stand_in,
    }


def make_tasks() -> dict[str, Build]:
    """Return the functions of all tasks that are here, by name.

    Raises:
        RuntimeError: if they cannot be discovered.
    """
    try:
        tasks = find_tasks()
    except ReBenchError as error:
        raise RuntimeError(f"the tasks of re-bench cannot be read: {error}") from None
    return {name: make_task(task) for name, task in tasks.items() if task.scorer.is_file()}
