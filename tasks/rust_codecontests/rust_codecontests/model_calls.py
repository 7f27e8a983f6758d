"""Read a submission's model calls from the gateway's log."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rust_codecontests.stand_in.prompt_reading import text_of

if TYPE_CHECKING:
    from pathlib import Path

_NAME = 200  # maximum characters of a model's name


@dataclass(frozen=True)
class ModelCall:
    """A model call that was answered completely or in part."""

    start: float
    """Time of the request, in seconds since the epoch."""
    end: float
    """Time of the reply, in seconds since the epoch."""
    prompts: tuple[str, ...]
    """Two texts: the text of the messages, and all text in the request, including field names."""
    answers: tuple[str, ...]
    """All texts in the reply's choices."""
    model: str = ""
    """Name of the model according to the server's reply."""


def read_calls(log: Path) -> list[ModelCall]:
    """Return the answered calls in a gateway's log, ordered by the time of the request."""
    with log.open(encoding="utf-8") as lines:
        calls = [_call(entry) for entry in map(json.loads, lines) if entry.get("response")]
    return sorted(calls, key=lambda call: call.start)


def _call(entry: dict[str, Any]) -> ModelCall:
    start = dt.datetime.fromisoformat(entry["time"]).timestamp()
    request = entry["request"]
    prompts = (text_of(request.get("messages") or []), "\n".join(_strings(request, keys=True)))
    messages = [choice.get("message") or {} for choice in entry["response"].get("choices") or []]
    name = str(entry["response"].get("model", ""))[:_NAME]
    return ModelCall(start, start + entry["seconds"], prompts, tuple(_strings(messages)), name)


def _strings(value: object, *, keys: bool = False) -> list[str]:
    """Return all strings in a JSON value, including field names if ``keys``."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair[not keys :]]
    return [text for entry in value for text in _strings(entry, keys=keys)] if isinstance(value, list) else []
