"""Calls to the models: for the next step, with a prompt that fits, for actions, and for the summary of old steps."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlab_agent.actions import EDIT, TruncatedReply
from mlab_agent.models import BudgetSpent, ContextFull, ModelError, user
from mlab_agent.prompt import native_tools, summary_request, system_text
from mlab_agent.state import STEP
from mlab_agent.truncate import truncate_middle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mlab_agent.actions import Action
    from mlab_agent.memory import Step
    from mlab_agent.models import Message, Reply
    from mlab_agent.parts import Clients
    from mlab_agent.state import RunState

_STOP = ("\nObservation:",)  # ends a reply in the text format: an observation is never the model's to write
_CONTEXT_SHARE = 0.8  # of what is left for the prompt: estimates of tokens are rough
_STEP_CHARS = (8_000, 3_000, 1_000, 300)  # steps are truncated to these lengths in turn, until the messages fit
_MIN_TASK_CHARS = 2_000
_CONTEXT_TRIES = 6


@dataclass
class Conversation:
    """Asks the models of a run."""

    state: RunState
    clients: Clients
    actions: Mapping[str, Action]
    tools: str
    """``auto``, ``native`` or ``text``."""
    emit: Callable[..., Any]

    @property
    def native(self) -> bool:
        """Whether actions are native tool calls."""
        return self.tools != "text" and self.clients.model.dialect.tools

    def next_reply(self, task: str, tail: str = "", only: str | None = None) -> Reply:
        """Ask the model for the next step, with shorter messages if it says that they are too long.

        ``task`` is the first message to the model, ``tail`` the very end of the last one, and ``only`` the name of the
        one tool that is offered. Raises ModelError or BudgetSpent if there can be no reply.
        """
        offered = {only: self.actions[only]} if only else self.actions
        tries = 0
        while True:
            tries += 1
            native = self.native
            tools = native_tools(offered) if native else []
            messages = self._messages(system_text(self.actions, native=native), task, tail, tools)
            try:
                return self.clients.model.complete(messages, purpose=STEP, tools=tools, stop=() if native else _STOP)
            except ContextFull:
                if tries == _CONTEXT_TRIES:
                    raise

    def ask(self, prompt: str, purpose: str) -> str:
        """Return the reply to a prompt; one that a killed process had already received is not asked for again.

        Raises TruncatedReply with the reply if it ended at its token limit, else ModelError or BudgetSpent.
        """
        digest = hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()[:16]
        if earlier := self.state.unused.get((purpose, digest)):
            reply = earlier.pop(0)
        else:
            model = self.clients.edit if purpose == EDIT else self.clients.fast
            reply = model.complete([user(prompt)], purpose=purpose, details={"prompt": digest})
        if reply.truncated:
            raise TruncatedReply(reply.text)
        return reply.text

    def _summarise(self, steps: Sequence[Step]) -> None:
        """Move the oldest steps into the research log; without a model their shortened texts are appended."""
        memory = self.state.memory
        limit = memory.limits.log_chars
        try:
            log = self.ask(summary_request(memory.log_text, steps, limit), "summary").strip()
        except TruncatedReply as reply:
            log = f"{str(reply).strip()}\n{_shortened(steps[-1:], limit)}"
        except (ModelError, BudgetSpent):
            log = ""
        log = log or f"{memory.log_text}\n{_shortened(steps, limit // 2)}".strip()
        entry = {"first": 1, "last": steps[-1].number, "text": truncate_middle(log, limit)}
        self.emit("folded", entries=[entry], whole=True)

    def _messages(self, header: str, task: str, tail: str, tools: list[dict[str, Any]]) -> list[Message]:
        """Return the messages, summarised and truncated until they fit; raise ModelError if they cannot."""
        memory = self.state.memory
        if old := memory.steps_to_summarise():
            self._summarise(old)
        while not self._fits(messages := self._compose(header, task, tail), tools) and len(memory.recent) > 1:
            self._summarise(memory.recent[: (len(memory.recent) + 1) // 2])
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
            f"the task does not fit into the {self.clients.model.dialect.context_tokens} tokens that the model reads"
        )

    def _compose(self, header: str, task: str, tail: str, chars: int | None = None) -> list[Message]:
        memory = self.state.memory
        messages = [{"role": "system", "content": header}, user(task), *memory.messages(chars)]
        end = "\n\n".join(part for part in (memory.reminder(), tail) if part)
        if end:  # appended to the last message, as not every server takes two of one role in a row
            messages[-1] = {**messages[-1], "content": f"{messages[-1]['content']}\n\n{end}"}
        return messages

    def _fits(self, messages: list[Message], tools: list[dict[str, Any]]) -> bool:
        model = self.clients.model
        room = model.dialect.context_tokens - model.dialect.max_output(model.settings.max_output_tokens)
        return model.estimate(messages, tools) <= room * _CONTEXT_SHARE


def _shortened(steps: Sequence[Step], limit: int) -> str:
    """Return the thought, action and observation of steps, shortened, where no model can summarise them."""
    room = limit // len(steps)
    texts = (
        f"Step {step.number}: {step.fields.get('Thought', '')} [{step.action} {step.input}] -> {step.observation}"
        for step in steps
    )
    return "\n".join(truncate_middle(" ".join(text.split()), room) for text in texts)
