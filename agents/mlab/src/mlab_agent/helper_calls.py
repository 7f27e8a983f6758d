"""Calls to a model for actions and the memory: edits, questions about files, the summary of older steps."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from mlab_agent.actions import EDIT, TruncatedReply
from mlab_agent.models import BudgetSpent, LanguageModel, ModelError, user
from mlab_agent.truncate import truncate_middle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mlab_agent.memory import Step
    from mlab_agent.state import RunState

_STEP_CHARS = 3_000  # of a step's reply, and of its observation, in the prompt for a summary
_SUMMARISE = """\
You keep the research log of an agent. Below are the log so far and the steps {numbers}, word for word, which are about
to leave the agent's sight. Write the log again, with these steps, in at most {limit} characters. For each step keep
why it was taken, what was done to which file with which settings, and the result: numbers, names, error messages and
decisions exactly. Shorten the oldest entries first. Write down nothing that the log and the observations do not show.
Write only the log.

The log so far:
{log}

{steps}"""


class HelperCalls:
    """Asks the model; a reply that a killed process of the run had already received is not asked for again."""

    def __init__(
        self, model: LanguageModel, edit_model: LanguageModel, state: RunState, emit: Callable[..., Any]
    ) -> None:
        self._model = model
        self._edit_model = edit_model
        self._state = state
        self._emit = emit

    def ask(self, prompt: str, purpose: str) -> str:
        """Return the reply to a prompt.

        Raises:
            TruncatedReply: with the reply, if it ended at its token limit.
            BudgetSpent: if a cap forbids the call.
            ModelError: if the model cannot be asked.
        """
        digest = hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()[:16]
        earlier = self._state.unused.get((purpose, digest))
        if earlier:
            reply = earlier.pop(0)
        else:
            model = self._edit_model if purpose == EDIT else self._model
            reply = model.complete([user(prompt)], purpose=purpose, details={"prompt": digest})
        if reply.truncated:
            raise TruncatedReply(reply.text)
        return reply.text

    def summarise(self, steps: Sequence[Step]) -> None:
        """Move the oldest steps into the research log; without a model their shortened texts are appended."""
        memory = self._state.memory
        limit = memory.limits.log_chars
        try:
            log = self.ask(_summary_prompt(memory.log_text, steps, limit), "summary").strip()
        except TruncatedReply as reply:
            log = f"{str(reply).strip()}\n{_shortened(steps[-1:], limit)}"
        except (ModelError, BudgetSpent):
            log = ""
        log = log or f"{memory.log_text}\n{_shortened(steps, limit // 2)}".strip()
        entry = {"first": 1, "last": steps[-1].number, "text": truncate_middle(log, limit)}
        self._emit("folded", entries=[entry], whole=True)


def _summary_prompt(log: str, steps: Sequence[Step], limit: int) -> str:
    texts = "\n\n".join(
        f"=== Step {step.number}\n{truncate_middle(step.text, _STEP_CHARS)}\n"
        f"Observation:\n{truncate_middle(step.observation, _STEP_CHARS)}"
        for step in steps
    )
    numbers = f"{steps[0].number} to {steps[-1].number}"
    return _SUMMARISE.format(numbers=numbers, limit=limit, log=log or "(empty)", steps=texts)


def _shortened(steps: Sequence[Step], limit: int) -> str:
    """Return the thought, action and observation of steps, shortened, where no model can summarise them."""
    room = limit // len(steps)
    lines = []
    for step in steps:
        arguments = " ".join(f"{name}={str(value)[:80]!r}" for name, value in step.input.items())
        thought = " ".join(step.fields.get("Thought", "").split())
        observation = truncate_middle(" ".join(step.observation.split()), room // 2)
        text = f"{thought} [{step.action} {arguments}] -> {observation}".lstrip()
        lines.append(f"Step {step.number}: {truncate_middle(text, room)}")
    return "\n".join(lines)
