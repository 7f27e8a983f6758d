"""Messages to a model and its replies, in the format of OpenAI's chat completions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]
_OVERHEAD_BYTES = 16  # of a message, beside its texts: role and separators


@dataclass(frozen=True)
class ToolCall:
    """A native tool call: the tool's name, and its arguments as the model wrote them."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """One completion. Tokens and dollars are those of this call alone."""

    text: str
    call: ToolCall | None
    truncated: bool
    """Whether it ended at its token limit."""
    prompt_tokens: int
    completion_tokens: int
    dollars: float | None
    """None where the model's prices are not known."""

    def record(self) -> dict[str, Any]:
        """Return the reply as it is written to the trace."""
        call = self.call and {"name": self.call.name, "arguments": self.call.arguments}
        return {
            "text": self.text,
            "call": call,
            "cut": self.truncated,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "dollars": self.dollars,
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Reply:
        """Return the reply of a trace's record."""
        call = record["call"]
        return cls(
            text=record["text"],
            call=ToolCall(call["name"], call["arguments"]) if call else None,
            truncated=record["cut"],
            prompt_tokens=record["prompt_tokens"],
            completion_tokens=record["completion_tokens"],
            dollars=record["dollars"],
        )


def system(text: str) -> Message:
    """Return a system message."""
    return {"role": "system", "content": text}


def user(text: str) -> Message:
    """Return a user message."""
    return {"role": "user", "content": text}


def assistant(text: str, call: ToolCall | None = None, call_id: str = "") -> Message:
    """Return a message of the model, with its native tool call if there is one."""
    if call is None:
        return {"role": "assistant", "content": text}
    function = {"name": call.name, "arguments": call.arguments}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def tool_result(text: str, call_id: str) -> Message:
    """Return the result of a native tool call."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def message_bytes(message: Message) -> int:
    """Return the approximate size of a message in bytes of UTF-8."""
    calls = message.get("tool_calls")
    call_bytes = len(json.dumps(calls, ensure_ascii=False).encode()) if calls else 0
    return len(str(message.get("content") or "").encode("utf-8", "replace")) + call_bytes + _OVERHEAD_BYTES
