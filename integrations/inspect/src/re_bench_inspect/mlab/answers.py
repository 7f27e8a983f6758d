"""Scores for the agent: of a session of re-bench, or of the scorers of any task of Inspect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from inspect_ai.scorer import score
from inspect_ai.scorer._score import _scorers
from inspect_ai.tool import ToolError

from mlab_agent.workspaces.files import WorkspaceError
from re_bench_inspect.samples import current_session, session_of_sample
from re_bench_inspect.tools import score_workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inspect_ai.agent import AgentState

_UNSCORED = frozenset({"error", "interrupted"})


@dataclass(frozen=True)
class Answered:
    """What came of a request for a score."""

    text: str
    """For the model."""
    reward: float | None = None
    finished: bool = False
    """Whether the episode has ended."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Answer(Protocol):
    """Gives the score of the workspace as it is; the ``final`` one ends the episode."""

    async def __call__(self, *, final: bool) -> Answered:
        """Return the score.

        Raises:
            WorkspaceError: if there is none, with a message for the model.
        """


def default_answer(state: AgentState, *, wanted: bool | None) -> tuple[Answer, bool]:
    """Return what gives scores in the sample that runs, and whether the model is to be offered it.

    Args:
        state: of the agent.
        wanted: whether it is to be, where there are scores; None: only those of a session of re-bench.
    """
    if session_of_sample() is not None:
        return session_answer, wanted is not False
    return task_answer(state), wanted is True and bool(_scorers.get(None))


async def session_answer(*, final: bool) -> Answered:
    """Have the session of re-bench score its workspace.

    Raises:
        WorkspaceError: if it cannot.
    """
    try:
        response = await score_workspace(final=final)
    except ToolError as error:
        if current_session().record.state == "finished":
            return Answered(error.message, finished=True)
        raise WorkspaceError(error.message) from None
    is_score = response.metadata.get("status") not in _UNSCORED
    return Answered(response.text, response.reward if is_score else None, response.finished, response.metadata)


def task_answer(state: AgentState) -> Answer:
    """Return what gives the scores of the task's own scorers; Inspect itself scores the end."""

    async def answer(*, final: bool) -> Answered:
        if final:
            return Answered("The answer was handed in.", finished=True)
        scores = await score(state)
        values = [value.value for value in scores]  # explanations may have the right answer
        numbers = [float(value) for value in values if isinstance(value, int | float)]
        text = "\n".join(f"Score: {value}" for value in values)
        return Answered(text or "There is no score.", numbers[0] if len(numbers) == len(values) == 1 else None)

    return answer
