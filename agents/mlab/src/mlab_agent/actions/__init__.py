"""What the agent can do: one registry of actions, each with its name, its arguments and what it does.

``actions_for(home)`` are those that a home allows; ``find(name, actions)`` reads a name as models write it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlab_agent.actions.action import Action, Argument, Context, CutReply, InputError, Limits
from mlab_agent.actions.compound import EDIT_SCRIPT, EDIT_SEGMENT, UNDERSTAND_FILE
from mlab_agent.actions.simple import (
    APPEND_FILE,
    COPY_FILE,
    EXECUTE_SCRIPT,
    FINAL_ANSWER,
    INSPECT_LINES,
    LIST_FILES,
    READ_FILE,
    SCORE,
    UNDO_EDIT,
    WRITE_FILE,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mlab_agent.homes import Home

__all__ = [
    "ACTIONS",
    "FINAL_ANSWER",
    "SCORE",
    "Action",
    "Argument",
    "Context",
    "CutReply",
    "InputError",
    "Limits",
    "actions_for",
    "find",
]

ACTIONS: Mapping[str, Action] = {
    action.name: action
    for action in (
        LIST_FILES,
        READ_FILE,
        WRITE_FILE,
        APPEND_FILE,
        COPY_FILE,
        INSPECT_LINES,
        UNDO_EDIT,
        EXECUTE_SCRIPT,
        UNDERSTAND_FILE,
        EDIT_SCRIPT,
        EDIT_SEGMENT,
        SCORE,
        FINAL_ANSWER,
    )
}


def actions_for(home: Home) -> Mapping[str, Action]:
    """Return the actions of a home, by name: ``Score`` only where there are scores."""
    return {name: action for name, action in ACTIONS.items() if action is not SCORE or home.gives_scores}


def find(name: str, actions: Mapping[str, Action] = ACTIONS) -> Action | None:
    """Return the action that a name means: case, asterisks, quotes, underscores and ``(AI)`` make no difference."""
    wanted = _plain(name)
    return next((action for action in actions.values() if _plain(action.name) == wanted), None)


def _plain(name: str) -> str:
    words = name.lower().replace("(ai)", " ").replace("_", " ").replace("-", " ")
    return " ".join(words.strip(" \t*`'\"[]<>.:;,").split())
