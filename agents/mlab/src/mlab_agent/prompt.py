"""What the model is told before the task: its part, the rules, the format, the actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mlab_agent.actions import Action

__all__ = ["STOP", "last_call", "native_tools", "system_text", "task_text"]

STOP = ("\nObservation:",)
"""What ends a reply in the text format: an observation is never the model's to write."""

_PART = """\
You are a research agent. You are given a task in machine learning and a workspace with files, and you work on it in
steps: in each you take one action and are shown what came of it. Nobody answers questions meanwhile. At first you know
nothing of the workspace but what the task says.
"""

_RULES = """\
Rules
- Plan before you act, and keep the plan, in Research Plan and Status: the plan as a whole, what is done, what is under
  way, and results in short. It is what you will remember longest; older steps leave your sight and come back only as
  entries of your research log.
- Research Plan and Status holds only progress that earlier steps have made and observations have confirmed. Guesses
  are not results; a figure for performance comes from running code and reading its output, and from nothing else.
- Measure the baseline before you improve it. Make each experiment answer one question, and compare like with like.
- Read an error before you repair it, and find its cause. Do not repeat an action that failed in the same way before.
- Files that are marked read-only stay as they are. Do not install packages.
- Each observation ends with what is left of your budget. Use it; before it ends, the best result must be in place.
- Final Answer ends the work at once and is given one time only. Check first that all that the task asks for is there.
"""

_FIELDS = """\
Reflection: [what the last observation means; after an error, what caused it and how to find or mend it]
Research Plan and Status: [the whole plan at a high level with the state and the confirmed results of each part,
  briefly. Put what is new in double asterisks, **like this**. Copy the rest from the step before; if nothing is new,
  copy it all. Drop a part of the plan only if you mean to revise it]
Fact Check: [each objective statement in what is new, one by one: was it confirmed directly by the observation just
  above, or is it a guess?]
Thought: [what you are doing now, which action that takes, and why]
"""

_TEXT_FORMAT = """\
Format. Each of your replies has these fields, in this order, each beginning on its own line, and nothing after them:
{fields}Action: [the name of one action]
Action Input: [its arguments as a JSON object]
The reply then gets an answer that begins with "Observation:". Never write an observation yourself.
"""

_NATIVE_FORMAT = """\
Format. Each of your replies has these fields, in this order, each beginning on its own line:
{fields}and then calls exactly one tool: the action. If you cannot call tools, end the reply with two more fields:
Action: [the name of one action]
Action Input: [its arguments as a JSON object]
What comes back begins the next step. Never write an observation yourself.
"""


def system_text(actions: Mapping[str, Action], *, native: bool) -> str:
    """Return the message of the system."""
    form = (_NATIVE_FORMAT if native else _TEXT_FORMAT).format(fields=_FIELDS)
    blocks = "\n\n".join(
        f"- {action.name}: {action.description}\n{action.usage}\n    Comes back: {action.returns}"
        for action in actions.values()
    )
    return f"{_PART}\n{_RULES}\n{form}\nActions\n\n{blocks}\n"


def task_text(task: str, root: str, budget: str) -> str:
    """Return the first message to the model."""
    return f"The task:\n\n{task.strip()}\n\nThe workspace is {root}; paths are relative to it.\n{budget}\nBegin."


def last_call(reached: str) -> str:
    """Return what the model is told when a limit is reached: nothing but the final answer is left."""
    names = {"steps": "All steps are used.", "time": "The time is over."}
    return (
        f"{names.get(reached, 'The budget is used up.')} Reply now with Final Answer and nothing else; whatever you "
        "reply, the work ends here, and what is in the workspace counts."
    )


def native_tools(actions: Mapping[str, Action]) -> list[dict[str, Any]]:
    """Return the actions as tools of OpenAI's chat completions."""
    return [
        {
            "type": "function",
            "function": {
                "name": action.tool_name,
                "description": f"{action.description} Comes back: {action.returns}.",
                "parameters": action.schema,
            },
        }
        for action in actions.values()
    ]
