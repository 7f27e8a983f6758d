"""What a server does not understand of a request, learnt from its refusals.

Servers that call themselves OpenAI-compatible differ: newer models want ``max_completion_tokens``, others know
only ``max_tokens``; some refuse ``stop``, ``temperature`` or tools. A refusal that names such a parameter changes the
dialect, and the request is made again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Dialect"]

_NO_TOOLS = re.compile(r"\btools?\b|tool_choice|function.?call", re.IGNORECASE)
_OUTPUT = re.compile(r"(?:at most|less than or equal to|maximum (?:value|of)|<=)\s*(\d[\d,]*)", re.IGNORECASE)
_CONTEXT = re.compile(r"maximum context length (?:is|of) (\d[\d,]*)", re.IGNORECASE)
_DROPPABLE = ("stop", "temperature", "parallel_tool_calls", "tool_choice")


@dataclass
class Dialect:
    """How to put a request to one model."""

    context_tokens: int
    """What the model reads and writes together, as far as is known."""
    length: str = "max_completion_tokens"
    most_output: int | None = None
    """The most tokens that the server lets be asked for."""
    dropped: set[str] = field(default_factory=set)
    tools: bool = True

    def request(self, **wanted: Any) -> dict[str, Any]:
        """Return the arguments of a request, those left out that the server refused before."""
        request = {name: value for name, value in wanted.items() if value is not None and name not in self.dropped}
        if "max_output" in request:
            request[self.length] = request.pop("max_output")
        if not self.tools or not request.get("tools"):
            for name in ("tools", "tool_choice", "parallel_tool_calls"):
                request.pop(name, None)
        return request

    def learn(self, request: dict[str, Any], parameter: str | None, text: str) -> bool:
        """Take a refusal (status 400 or 422) into account; tell whether another request makes sense."""
        named = f"{parameter or ''} {text}"
        most = _most_output(text)
        if most and self.length in request and most < request[self.length]:
            self.most_output = most
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
        """Take into account that a prompt was too long: believe the server's figure, else halve ours."""
        given = _CONTEXT.search(text)
        figure = int(given.group(1).replace(",", "")) if given else self.context_tokens
        self.context_tokens = figure if figure < self.context_tokens else self.context_tokens // 2

    def output(self, wanted: int) -> int:
        """Return how many tokens may be asked for: the reply takes no more than a quarter of the context."""
        return max(1, min(wanted, self.context_tokens // 4, self.most_output or wanted))

    def record(self) -> dict[str, Any]:
        """Return the dialect as it stands in the trace."""
        return {
            "context_tokens": self.context_tokens,
            "length": self.length,
            "most_output": self.most_output,
            "dropped": sorted(self.dropped),
            "tools": self.tools,
        }

    def restore(self, record: dict[str, Any]) -> None:
        """Take over what a trace has."""
        self.context_tokens, self.length, self.most_output = (
            record["context_tokens"],
            record["length"],
            record["most_output"],
        )
        self.dropped, self.tools = set(record["dropped"]), record["tools"]


def _most_output(text: str) -> int | None:
    """Return the limit that a refusal names, as in ``this model supports at most 4096 completion tokens``."""
    found = _OUTPUT.search(text)
    return int(found.group(1).replace(",", "")) if found and "tokens" in text else None
