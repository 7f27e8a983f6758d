"""The calls to models that serve actions and the memory, beside those whose replies are steps."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from mlab_agent.actions import CutReply
from mlab_agent.models import BudgetSpent, Model, ModelError, user
from mlab_agent.research_log import Entry
from mlab_agent.summaries import brief, condense_request, fold_request, read_summaries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mlab_agent.state import RunState
    from mlab_agent.steps import Step

__all__ = ["Asking"]

_CONDENSED_SHARE = 5  # old entries are put together into about a fifth of the log


class Asking:
    """Asks the model for compound actions and summaries; what a killed run was already told is not asked again."""

    def __init__(self, model: Model, state: RunState, emit: Callable[..., Any]) -> None:
        self._model = model
        self._state = state
        self._emit = emit

    def ask(self, prompt: str, purpose: str) -> str:
        """Return the reply to a prompt.

        Raises:
            CutReply: with the reply, if it ended at its token limit.
            BudgetSpent: if a cap forbids the call.
            ModelError: if the model cannot be asked.
        """
        digest = hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()[:16]
        known = self._state.unused.get((purpose, digest))
        reply = known.pop(0) if known else None
        if reply is None:
            reply = self._model.complete([user(prompt)], purpose=purpose, about={"prompt": digest})
        if reply.cut:
            raise CutReply(reply.text)
        return reply.text

    def fold(self, steps: Sequence[Step]) -> None:
        """Put the oldest steps into the research log, and condense its beginning when it is full."""
        limit = self._state.memory.limits.summary_chars
        try:
            entries = read_summaries(self._whole(fold_request(steps, limit), "summary"), steps, limit)
        except (ModelError, BudgetSpent):
            entries = [Entry(step.number, step.number, brief(step, limit)) for step in steps]
        self._emit("folded", entries=[entry.record() for entry in entries])
        log = self._state.memory.log
        while log.full and len(log.entries) > 1:
            self._condense()

    def _condense(self) -> None:
        log = self._state.memory.log
        old = log.oldest_half()
        limit = log.limit // _CONDENSED_SHARE
        try:
            text = self._whole(condense_request(old, limit), "condense")
        except (ModelError, BudgetSpent):
            text = "\n".join(f"{entry.title}: {entry.text[: limit // len(old)]}" for entry in old)
        self._emit("condensed", count=len(old), text=text or "(nothing)")

    def _whole(self, prompt: str, purpose: str) -> str:
        try:
            return self.ask(prompt, purpose)
        except CutReply as reply:
            return str(reply)
