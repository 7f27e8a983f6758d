"""What a run has used so far, in a small file beside its trace, for programs that run agents: ``usage.json``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from mlab_agent.state import RunState

USAGE_FILE = "usage.json"
"""Its name in the directory of a run."""
_KINDS = frozenset({"start", "resume", "rewind", "call", "call failed", "reply", "observation", "end"})


def write_usage(directory: Path, kind: str, state: RunState) -> None:
    """Replace the file, if an event of this kind can change it; a process that is killed leaves a whole one.

    ``dollars`` (null while the price of a call is not known) and ``tokens`` count a call that is under way in full;
    ``reason`` is why the run ended, null until it has.

    Raises:
        OSError: if it cannot be written.
    """
    if kind not in _KINDS:
        return
    spending, call = state.spending, state.call_under_way
    tokens, dollars, unpriced = spending.tokens, spending.dollars, bool(spending.unpriced_calls)
    if call is not None:
        tokens += call["prompt_tokens"]
        dollars += call["dollars"] or 0.0
        unpriced = unpriced or call["dollars"] is None
    usage = {
        "dollars": None if unpriced else dollars,
        "tokens": tokens,
        "steps": state.steps,
        "reason": state.end["reason"] if state.end else None,
    }
    unfinished = directory / f".{USAGE_FILE}.new"
    unfinished.write_text(json.dumps(usage) + "\n", encoding="utf-8")
    unfinished.replace(directory / USAGE_FILE)
