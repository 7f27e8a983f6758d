"""The calls of a scoring, read from the gateway's log."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class ModelCall:
    """A call to the model that was answered, in full or in part."""

    start: float
    """When it came, in seconds since the epoch."""
    end: float
    """When it was answered."""
    prompts: tuple[str, ...]
    """The texts of its messages."""
    answers: tuple[str, ...]
    """The texts of its choices."""


def read_calls(log: Path) -> list[ModelCall]:
    """Return the calls in a gateway's log that have an answer, in the order in which they came."""
    with log.open(encoding="utf-8") as lines:
        calls = [_call(entry) for entry in map(json.loads, lines) if entry.get("response")]
    return sorted(calls, key=lambda call: call.start)


def _call(entry: dict[str, Any]) -> ModelCall:
    start = dt.datetime.fromisoformat(entry["time"]).timestamp()
    messages = [choice.get("message") or {} for choice in entry["response"].get("choices") or []]
    return ModelCall(start, start + entry["seconds"], _texts(entry["request"].get("messages") or []), _texts(messages))


def _texts(messages: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return all that is text in some messages, wherever a client has put it."""
    return tuple(text for message in messages for text in _strings(message))


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    entries = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for entry in entries for text in _strings(entry)]
