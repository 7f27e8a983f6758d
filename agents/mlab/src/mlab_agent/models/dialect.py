"""Which parameters of a request a server supports, learnt from its errors.

Servers that call themselves OpenAI-compatible differ: newer models need ``max_completion_tokens``, others know only
``max_tokens``; some refuse ``stop``, ``temperature`` or tools. An error that names such a parameter changes the
dialect, and the request is made again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_NO_TOOLS = re.compile(r"\btools?\b|tool_choice|function.?call", re.IGNORECASE)
_OUTPUT = re.compile(r"(?:at most|less than or equal to|maximum (?:value|of)|<=)\s*(\d[\d,]*)", re.IGNORECASE)
_CONTEXT = re.compile(r"maximum context length (?:is|of) (\d[\d,]*)", re.IGNORECASE)
_DROPPABLE = ("stop", "temperature", "seed", "parallel_tool_calls", "tool_choice")


@dataclass
class Dialect:
    """The form of requests to one model."""

    context_tokens: int
    """What the model reads and writes together, as far as known."""
    length: str = "max_completion_tokens"
    most_output: int | None = None
    """The most tokens that the server allows in a reply, if known."""
    dropped: set[str] = field(default_factory=set)
    tools: bool = True

    def request(self, **parameters: Any) -> dict[str, Any]:
        """Return the parameters of a request, without those that are None or that the server refused before."""
        request = {name: value for name, value in parameters.items() if value is not None and name not in self.dropped}
        if "max_output" in request:
            request[self.length] = request.pop("max_output")
        if not self.tools or not request.get("tools"):
            for name in ("tools", "tool_choice", "parallel_tool_calls"):
                request.pop(name, None)
        return request

    def learn(self, request: dict[str, Any], parameter: str | None, text: str) -> bool:
        """Learn from an error (status 400 or 422); tell whether the request should be made again."""
        named = f"{parameter or ''} {text}"
        limit = _output_limit(text)
        if limit and self.length in request and limit < request[self.length]:
            self.most_output = limit
            return True
        if self.length in request and self.length in named:
            other = "max_tokens" if self.length == "max_completion_tokens" else "max_completion_tokens"
            if other in self.dropped:
                return False
            self.dropped.add(self.length)
            self.length = other
            return True
        for name in _DROPPABLE:
            if name in request and re.search(rf"\b{name}\b", named):
                self.dropped.add(name)
                return True
        if "tools" in request and self.tools and _NO_TOOLS.search(named):
            self.tools = False
            return True
        return False

    def learn_context(self, text: str) -> None:
        """Learn from an error about a prompt that was too long: take the server's limit, else halve ours."""
        match = _CONTEXT.search(text)
        limit = int(match[1].replace(",", "")) if match else self.context_tokens
        self.context_tokens = limit if limit < self.context_tokens else self.context_tokens // 2

    def max_output(self, tokens: int) -> int:
        """Return how many of these tokens a reply may have: at most a quarter of the context."""
        return max(1, min(tokens, self.context_tokens // 4, self.most_output or tokens))

    def record(self) -> dict[str, Any]:
        """Return the dialect as it is written to the trace."""
        return {
            "context_tokens": self.context_tokens,
            "length": self.length,
            "most_output": self.most_output,
            "dropped": sorted(self.dropped),
            "tools": self.tools,
        }

    def restore(self, record: dict[str, Any]) -> None:
        """Become the dialect of a trace's record."""
        self.context_tokens = record["context_tokens"]
        self.length = record["length"]
        self.most_output = record["most_output"]
        self.dropped = set(record["dropped"])
        self.tools = record["tools"]


def _output_limit(text: str) -> int | None:
    """Return the limit that an error names, as in ``this model supports at most 4096 completion tokens``."""
    limit = _OUTPUT.search(text)
    return int(limit[1].replace(",", "")) if limit and "tokens" in text else None
