"""Calls to a model that serve actions and the memory: edits, questions about files, summaries of older steps."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from mlab_agent.actions import EDIT, TruncatedReply
from mlab_agent.memory import LogEntry
from mlab_agent.models import BudgetSpent, LanguageModel, ModelError, user
from mlab_agent.truncate import truncate_middle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mlab_agent.memory import Step
    from mlab_agent.state import RunState

_CONDENSED_SHARE = 5  # the oldest entries are condensed into about a fifth of the log
_STEP_HEADING = re.compile(r"^[\s#*\-]*Step\s+(\d+)\s*[:.\-]*\**\s*", re.MULTILINE | re.IGNORECASE)
_STEP_CHARS = 3_000

_SUMMARISE = """\
Below are steps {numbers} of a research agent's work, word for word. They are about to leave its sight. Write the
entries of its research log: for each step one paragraph that begins with the words `Step N:` and says why the step was
taken, what was done to which file with which settings, and what came of it, in at most {limit} characters. Keep
numbers, names, error messages and decisions exactly. Write down nothing that the observations do not show. Write only
the paragraphs.

{steps}"""

_CONDENSE = """\
Below are the oldest entries of a research agent's log. Put them together into one text of at most {limit} characters.
Keep what later work may need: results with their numbers and settings, what was found not to work and why, decisions,
names of files. Add nothing. Write only the text.

{entries}"""


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
        """Move the oldest steps into the research log, and condense its beginning when it is full."""
        limit = self._state.memory.limits.summary_chars
        try:
            entries = parse_summaries(self._ask_for_text(summary_prompt(steps, limit), "summary"), steps, limit)
        except (ModelError, BudgetSpent):
            entries = parse_summaries("", steps, limit)
        self._emit("folded", entries=[entry.record() for entry in entries])
        log = self._state.memory.log
        while log.is_full and len(log.entries) > 1:
            self._condense()

    def _condense(self) -> None:
        log = self._state.memory.log
        oldest = log.oldest_half()
        limit = log.limit // _CONDENSED_SHARE
        entries = "\n".join(f"{entry.title}: {entry.text}" for entry in oldest)
        try:
            text = self._ask_for_text(_CONDENSE.format(limit=limit, entries=entries), "condense")
        except (ModelError, BudgetSpent):
            text = "\n".join(f"{entry.title}: {entry.text[: limit // len(oldest)]}" for entry in oldest)
        self._emit("condensed", count=len(oldest), text=text or "(nothing)")

    def _ask_for_text(self, prompt: str, purpose: str) -> str:
        """Return the reply, even if it was truncated."""
        try:
            return self.ask(prompt, purpose)
        except TruncatedReply as reply:
            return str(reply)


def summary_prompt(steps: Sequence[Step], limit: int) -> str:
    """Return the prompt that asks for entries of the log, each of at most ``limit`` characters."""
    texts = "\n\n".join(
        f"=== Step {step.number}\n{truncate_middle(step.text, _STEP_CHARS)}\n"
        f"Observation:\n{truncate_middle(step.observation, _STEP_CHARS)}"
        for step in steps
    )
    return _SUMMARISE.format(numbers=f"{steps[0].number} to {steps[-1].number}", limit=limit, steps=texts)


def parse_summaries(reply: str, steps: Sequence[Step], limit: int) -> list[LogEntry]:
    """Return one entry for each step: the reply's paragraph about it, else :func:`summary_without_model`."""
    headings = list(_STEP_HEADING.finditer(reply))
    ends = [heading.start() for heading in headings[1:]] + [len(reply)]
    texts = {
        int(heading[1]): reply[heading.end() : end].strip()
        for heading, end in zip(headings, ends, strict=bool(headings))
    }
    return [
        LogEntry(
            step.number,
            step.number,
            truncate_middle(texts.get(step.number) or summary_without_model(step, limit), 2 * limit),
        )
        for step in steps
    ]


def summary_without_model(step: Step, limit: int) -> str:
    """Return a step's entry where no model can be asked: its thought, its action, and the observation, shortened."""
    arguments = " ".join(f"{name}={str(value)[:80]!r}" for name, value in step.input.items())
    thought = " ".join(step.fields.get("Thought", "").split())
    observation = truncate_middle(" ".join(step.observation.split()), limit // 2)
    return truncate_middle(f"{thought} [{step.action} {arguments}] -> {observation}".lstrip(), limit)
