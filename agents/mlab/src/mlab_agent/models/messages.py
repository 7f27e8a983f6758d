"""What is said to a model and what it says, in the shape of OpenAI's chat completions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["Message", "Reply", "ToolCall", "assistant", "message_bytes", "system", "tool_result", "user"]

Message = dict[str, Any]
_OVERHEAD = 16  # bytes that a message costs beside its texts: its role and separators


@dataclass(frozen=True)
class ToolCall:
    """A native call: the tool's name, and its arguments as the model wrote them."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """One completion. Tokens and dollars are those of this call alone."""

    text: str
    call: ToolCall | None
    cut: bool
    """Whether it ended at its token limit."""
    prompt_tokens: int
    completion_tokens: int
    dollars: float

    def record(self) -> dict[str, Any]:
        """Return the reply as it stands in the trace."""
        call = self.call and {"name": self.call.name, "arguments": self.call.arguments}
        return {
            "text": self.text,
            "call": call,
            "cut": self.cut,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "dollars": self.dollars,
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Reply:
        """Return the reply that a trace has."""
        call = record["call"]
        return cls(
            text=record["text"],
            call=ToolCall(call["name"], call["arguments"]) if call else None,
            cut=record["cut"],
            prompt_tokens=record["prompt_tokens"],
            completion_tokens=record["completion_tokens"],
            dollars=record["dollars"],
        )


def system(text: str) -> Message:
    """Return a message of the system."""
    return {"role": "system", "content": text}


def user(text: str) -> Message:
    """Return a message to the model."""
    return {"role": "user", "content": text}


def assistant(text: str, call: ToolCall | None = None, call_id: str = "") -> Message:
    """Return a message of the model, with a native call if it made one."""
    if call is None:
        return {"role": "assistant", "content": text}
    function = {"name": call.name, "arguments": call.arguments}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def tool_result(text: str, call_id: str) -> Message:
    """Return what came of a native call."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def message_bytes(message: Message) -> int:
    """Return about how many bytes of UTF-8 a message is."""
    calls = message.get("tool_calls")
    beside = len(json.dumps(calls, ensure_ascii=False).encode()) if calls else 0
    return len(str(message.get("content") or "").encode("utf-8", "replace")) + beside + _OVERHEAD
