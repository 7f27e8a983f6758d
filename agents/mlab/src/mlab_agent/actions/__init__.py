"""The actions of the agent: a registry of all of them, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlab_agent.actions.action import Action, Argument, Context, InputError, Limits, TruncatedReply
from mlab_agent.actions.basic import BASIC_ACTIONS, FINAL_ANSWER, SCORE
from mlab_agent.actions.model_based import EDIT, MODEL_BASED_ACTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mlab_agent.workspaces.base import Workspace

__all__ = [
    "ACTIONS",
    "EDIT",
    "FINAL_ANSWER",
    "SCORE",
    "Action",
    "Argument",
    "Context",
    "InputError",
    "Limits",
    "TruncatedReply",
    "actions_for",
    "find",
]

ACTIONS: Mapping[str, Action] = {
    action.name: action for action in (*BASIC_ACTIONS, *MODEL_BASED_ACTIONS, SCORE, FINAL_ANSWER)
}


def actions_for(workspace: Workspace) -> Mapping[str, Action]:
    """Return the actions that a workspace allows, by name: ``Score`` only where there are scores."""
    return {name: action for name, action in ACTIONS.items() if action is not SCORE or workspace.gives_scores}


def find(name: str, actions: Mapping[str, Action] = ACTIONS) -> Action | None:
    """Return the action of a name as models write it: case, asterisks, quotes, underscores and ``(AI)`` are ignored."""
    normalised = _normalise(name)
    return next((action for action in actions.values() if _normalise(action.name) == normalised), None)


def _normalise(name: str) -> str:
    words = name.lower().replace("(ai)", " ").replace("_", " ").replace("-", " ")
    return " ".join(words.strip(" \t*`'\"[]<>.:;,").split())
