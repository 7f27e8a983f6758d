"""How steps become entries of the research log: what a model is asked, and what is written where none can be asked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mlab_agent.cutting import cut_middle
from mlab_agent.research_log import Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mlab_agent.steps import Step

__all__ = ["brief", "condense_request", "fold_request", "read_summaries"]

_HEAD = re.compile(r"^[\s#*\-]*Step\s+(\d+)\s*[:.\-]*\**\s*", re.MULTILINE | re.IGNORECASE)
_SHOWN = 3_000

_FOLD = """\
Below are steps {numbers} of a research agent's work, word for word. They are about to leave its sight. Write the
entries of its research log: for each step one paragraph that begins with the words `Step N:` and says why the step was
taken, what was done to which file with which settings, and what came of it, in at most {limit} characters. Keep
numbers, names, error messages and decisions exactly. Write down nothing that the observations do not show. Write only
the paragraphs.

{shown}"""

_CONDENSE = """\
Below are the oldest entries of a research agent's log. Put them together into one text of at most {limit} characters.
Keep what later work may need: results with their numbers and settings, what was found not to work and why, decisions,
names of files. Add nothing. Write only the text.

{shown}"""


def brief(step: Step, limit: int) -> str:
    """Return a step's entry for the log where no model is asked: its thought, its action, and how it came out."""
    written = " ".join(f"{key}={str(value)[:80]!r}" for key, value in step.input.items())
    thought = " ".join(step.fields.get("Thought", "").split())
    said = cut_middle(" ".join(step.observation.split()), limit // 2)
    return cut_middle(f"{thought} [{step.action} {written}] -> {said}".lstrip(), limit)


def fold_request(steps: Sequence[Step], limit: int) -> str:
    """Return what a model is asked, to have steps summarised."""
    shown = "\n\n".join(
        f"=== Step {step.number}\n{cut_middle(step.text, _SHOWN)}\nObservation:\n{cut_middle(step.observation, _SHOWN)}"
        for step in steps
    )
    return _FOLD.format(numbers=f"{steps[0].number} to {steps[-1].number}", limit=limit, shown=shown)


def read_summaries(reply: str, steps: Sequence[Step], limit: int) -> list[Entry]:
    """Return one entry for each step: the reply's paragraph about it, else what :func:`brief` makes of it."""
    heads = list(_HEAD.finditer(reply))
    ends = [head.start() for head in heads[1:]] + [len(reply)]
    found = {int(head.group(1)): reply[head.end() : end].strip() for head, end in zip(heads, ends, strict=bool(heads))}
    texts = [found.get(step.number) or brief(step, limit) for step in steps]
    return [
        Entry(step.number, step.number, cut_middle(text, 2 * limit)) for step, text in zip(steps, texts, strict=True)
    ]


def condense_request(entries: Sequence[Entry], limit: int) -> str:
    """Return what a model is asked, to have old entries of the log put together into one."""
    return _CONDENSE.format(limit=limit, shown="\n".join(f"{entry.title}: {entry.text}" for entry in entries))
