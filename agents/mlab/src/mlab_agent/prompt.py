"""The prompt of a step: system message with rules, format and actions, task, memory; and its length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlab_agent.models import ContextFull, LanguageModel, Message, ModelError, Reply, system, user
from mlab_agent.state import STEP
from mlab_agent.truncate import truncate_middle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mlab_agent.actions import Action
    from mlab_agent.helper_calls import HelperCalls
    from mlab_agent.state import RunState

STOP = ("\nObservation:",)
"""What ends a reply in the text format: an observation is never the model's to write."""
_CONTEXT_SHARE = 0.8  # of what is left beside the reply: estimates of tokens are rough
_STEP_CHARS = (8_000, 3_000, 1_000, 300)  # steps are truncated to these lengths in turn, until the messages fit
_MIN_TASK_CHARS = 2_000
_CONTEXT_TRIES = 6

_ROLE = """\
You are a research agent. You are given a task in machine learning and a workspace with files, and you work on it in
steps: in each you take one action and see its result. You cannot ask questions. At first you know
nothing of the workspace but what the task says.
"""

_RULES = """\
Rules
- Plan before you act, and keep the plan, in Research Plan and Status: the plan as a whole, what is done, what is under
  way, and results in short. It is what you will remember longest; older steps leave your sight, but for
  your research log, a summary.
- Research Plan and Status holds only progress that earlier steps have made and observations have confirmed. Guesses
  are not results; a figure for performance comes from running code and reading its output, and from nothing else.
- Measure the baseline before you improve it. Make each experiment answer one question, and compare like with like.
- Read an error before you repair it, and find its cause. Do not repeat an action that failed in the same way before.
- Files that are marked read-only stay as they are. Do not install packages.
- Each observation ends with what is left of your budget. Use it; before it ends, the best result must be in place.
- Final Answer ends the work at once and is given one time only. Check first that all that the task asks for is there.
"""

_FIELDS = """\
Reflection: [what the last observation means; after an error, what caused it and how to find or fix it]
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
    """Return the system message."""
    reply_format = (_NATIVE_FORMAT if native else _TEXT_FORMAT).format(fields=_FIELDS)
    descriptions = "\n\n".join(
        f"- {action.name}: {action.description}\n{action.usage}\n    Comes back: {action.returns}"
        for action in actions.values()
    )
    return f"{_ROLE}\n{_RULES}\n{reply_format}\nActions\n\n{descriptions}\n"


def task_text(task: str, root: str, budget: str) -> str:
    """Return the first message to the model."""
    return f"The task:\n\n{task.strip()}\n\nThe workspace is {root}; paths are relative to it.\n{budget}\nBegin."


def final_answer_request(limit: str) -> str:
    """Return what the model is told when a limit is reached: only the final answer is accepted."""
    reasons = {"steps": "All steps are used.", "time": "The time is over."}
    return (
        f"{reasons.get(limit, 'The budget is used up.')} Reply now with Final Answer and nothing else; whatever you "
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


class Conversation:
    """Composes the messages of the next call, and summarises old steps before the context is full."""

    def __init__(
        self,
        state: RunState,
        model: LanguageModel,
        helper_calls: HelperCalls,
        actions: Mapping[str, Action],
        tools: str,
    ) -> None:
        self._state = state
        self._model = model
        self._helper_calls = helper_calls
        self._actions = actions
        self._tools = tools

    @property
    def native(self) -> bool:
        """Whether actions are native tool calls."""
        return self._tools != "text" and self._model.dialect.tools

    def next_reply(self, task: str, tail: str = "", only: str | None = None) -> Reply:
        """Ask the model for the next step, with shorter messages if it says that they are too long.

        Args:
            task: the first message to the model.
            tail: the very end of the last message.
            only: the name of the one tool that is offered; None for all.

        Raises:
            ModelError: if the model cannot be asked, or not even the task fits.
            BudgetSpent: if a cap forbids the call.
        """
        actions = {only: self._actions[only]} if only else self._actions
        for tries_left in reversed(range(_CONTEXT_TRIES)):
            native = self.native
            tools = native_tools(actions) if native else []
            messages = self._messages(system_text(self._actions, native=native), task, tail, tools)
            try:
                return self._model.complete(messages, purpose=STEP, tools=tools, stop=() if native else STOP)
            except ContextFull:
                if not tries_left:
                    raise
        raise AssertionError

    def _messages(self, header: str, task: str, tail: str, tools: list[dict[str, Any]]) -> list[Message]:
        """Return the messages, summarised and truncated until they fit; raise ModelError if they cannot."""
        memory = self._state.memory
        if old := memory.steps_to_summarise():
            self._helper_calls.summarise(old)
        while not self._fits(messages := self._compose(header, task, tail), tools) and len(memory.recent) > 1:
            self._helper_calls.summarise(memory.recent[: (len(memory.recent) + 1) // 2])
        for chars in _STEP_CHARS:
            if self._fits(messages, tools):
                return messages
            messages = self._compose(header, task, tail, chars)
        while not self._fits(messages, tools) and len(task) > _MIN_TASK_CHARS:
            task = truncate_middle(task, len(task) * 2 // 3)
            messages = self._compose(header, task, tail, _STEP_CHARS[-1])
        if self._fits(messages, tools):
            return messages
        raise ModelError(
            f"the task does not fit into the {self._model.dialect.context_tokens} tokens that the model reads"
        )

    def _compose(self, header: str, task: str, tail: str, chars: int | None = None) -> list[Message]:
        memory = self._state.memory
        messages = [system(header), user(task), *memory.messages(chars)]
        end = "\n\n".join(part for part in (memory.reminder(), tail) if part)
        if end:  # appended to the last message, as not every server takes two of one role in a row
            messages[-1] = {**messages[-1], "content": f"{messages[-1]['content']}\n\n{end}"}
        return messages

    def _fits(self, messages: list[Message], tools: list[dict[str, Any]]) -> bool:
        dialect = self._model.dialect
        room = dialect.context_tokens - dialect.max_output(self._model.settings.max_output_tokens)
        return self._model.estimate(messages, len(str(tools)) if tools else 0) <= room * _CONTEXT_SHARE
