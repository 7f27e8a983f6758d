"""The messages of the next call: header, task, memory, and a length that fits into what the model reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlab_agent.cutting import cut_middle
from mlab_agent.models import Message, Model, ModelError, system, user

if TYPE_CHECKING:
    from mlab_agent.asking import Asking
    from mlab_agent.state import RunState

__all__ = ["Conversation"]

_FILL = 0.8  # of what is left beside the reply: estimates of tokens are rough
_SHORTER = (8_000, 3_000, 1_000, 300)
_LEAST_TASK = 2_000


class Conversation:
    """Makes the messages, and compacts the memory before the context is full."""

    def __init__(self, state: RunState, model: Model, asking: Asking) -> None:
        self._state = state
        self._model = model
        self._asking = asking

    def messages(self, header: str, task: str, tail: str, tools: list[dict[str, Any]]) -> list[Message]:
        """Return the messages.

        Args:
            header: the system's message.
            task: the first message to the model.
            tail: what is said at the very end, beside what the model is reminded of.
            tools: what else is sent.

        Raises:
            ModelError: if not even the task fits.
        """
        memory = self._state.memory
        if old := memory.to_fold():
            self._asking.fold(old)
        while not self._fits(made := self._made(header, task, tail), tools) and len(memory.recent) > 1:
            self._asking.fold(memory.recent[: (len(memory.recent) + 1) // 2])
        for chars in _SHORTER:
            if self._fits(made, tools):
                return made
            made = self._made(header, task, tail, chars)
        while not self._fits(made, tools) and len(task) > _LEAST_TASK:
            task = cut_middle(task, len(task) * 2 // 3)
            made = self._made(header, task, tail, _SHORTER[-1])
        if self._fits(made, tools):
            return made
        raise ModelError(
            f"the task does not fit into the {self._model.dialect.context_tokens} tokens that the model reads"
        )

    def _made(self, header: str, task: str, tail: str, chars: int | None = None) -> list[Message]:
        memory = self._state.memory
        messages = [system(header), user(task), *memory.messages(chars)]
        end = "\n\n".join(part for part in (memory.reminder(), tail) if part)
        if end:  # put into the last message, as not every server takes two of one role in a row
            messages[-1] = {**messages[-1], "content": f"{messages[-1]['content']}\n\n{end}"}
        return messages

    def _fits(self, messages: list[Message], tools: list[dict[str, Any]]) -> bool:
        dialect = self._model.dialect
        room = dialect.context_tokens - dialect.output(self._model.settings.max_output_tokens)
        return self._model.estimate(messages, len(str(tools)) if tools else 0) <= room * _FILL
