"""What all models share: messages, calls within the caps and their events, and what a server does not support.

Messages are in the format of OpenAI's chat completions. Servers that call themselves compatible with it differ: newer
models need ``max_completion_tokens``, others know only ``max_tokens``; some refuse ``stop``, ``temperature`` or tools.
An error that names such a parameter changes the :class:`Dialect`, and the request is made again.
"""

from __future__ import annotations

import abc
import json
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from mlab_agent.models.costs import BudgetSpent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mlab_agent.models.costs import Prices, Spending

Message = dict[str, Any]
_OVERHEAD_BYTES = 16  # of a message, beside its texts: role and separators
_NO_TOOLS = re.compile(r"\btools?\b|tool_choice|function.?call", re.IGNORECASE)
_OUTPUT = re.compile(r"(?:at most|less than or equal to|maximum (?:value|of)|<=)\s*(\d[\d,]*)", re.IGNORECASE)
_CONTEXT = re.compile(r"maximum context length (?:is|of) (\d[\d,]*)", re.IGNORECASE)
_DROPPABLE = ("stop", "temperature", "seed", "parallel_tool_calls", "tool_choice")
_TOO_LONG = re.compile(
    r"context.?length|context.?window|maximum context|prompt is too long|too many tokens|context_length_exceeded",
    re.IGNORECASE,
)
_BAD_REQUEST_STATUSES = frozenset({400, 422})
_TOO_LARGE = 413
BYTES_A_TOKEN = 2.5
"""Until the first reply has shown how the model counts."""
_ESTIMATE_MARGIN = 1.1


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
        return {**vars(self), "dropped": sorted(self.dropped)}

    def restore(self, record: dict[str, Any]) -> None:
        """Become the dialect of a trace's record."""
        vars(self).update({name: record[name] for name in vars(self)} | {"dropped": set(record["dropped"])})


def _output_limit(text: str) -> int | None:
    """Return the limit that an error names, as in ``this model supports at most 4096 completion tokens``."""
    limit = _OUTPUT.search(text)
    return int(limit[1].replace(",", "")) if limit and "tokens" in text else None


class ModelError(Exception):
    """A call failed for good: the model could not be asked, or its answer not be read. The message says why."""


class ContextFull(ModelError):  # noqa: N818 - named for the state that it reports
    """The prompt is longer than the model's context."""


@dataclass(frozen=True, kw_only=True)
class ModelProfile:
    """What the agent knows of a model."""

    name: str
    prices: Prices | None = None
    context_tokens: int = 100_000
    """Prompt and reply together."""
    max_output_tokens: int = 8_192


@dataclass(frozen=True, kw_only=True)
class ModelSettings(ModelProfile):
    """The settings of one model's client."""

    base_url: str
    temperature: float | None = None
    seed: int | None = None
    timeout_s: float = 600.0
    attempts: int = 8
    """How often a call is tried before it fails."""
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0


class LanguageModel(abc.ABC):
    """A model. ``emit(kind, fields)`` is called for every call and reply, as they happen."""

    settings: ModelProfile

    def __init__(self, settings: ModelProfile, spending: Spending, emit: Callable[[str, dict[str, Any]], None]) -> None:
        self.settings = settings
        self.dialect = Dialect(settings.context_tokens)
        self._spending = spending
        self._emit = emit
        self._bytes_a_token = BYTES_A_TOKEN

    def estimate(self, messages: Sequence[Message], other_bytes: int = 0) -> int:
        """Return about how many tokens messages have, rather too many than too few; ``other_bytes`` are sent too."""
        return int((sum(map(message_bytes, messages)) + other_bytes) / self._bytes_a_token * _ESTIMATE_MARGIN) + 8

    def complete(
        self,
        messages: Sequence[Message],
        *,
        purpose: str,
        tools: Sequence[Mapping[str, Any]] = (),
        stop: Sequence[str] = (),
        details: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Ask the model, and again after temporary failures.

        Args:
            messages: the conversation.
            purpose: of the call, for the trace.
            tools: native tools; left out where the server refuses them.
            stop: texts that end the reply.
            details: further fields of the trace's entry.

        Raises:
            BudgetSpent: if the caps or the time do not allow the call.
            ContextFull: if the prompt is longer than the model's context.
            ModelError: if the server refuses, or all attempts failed.
        """
        settings = self.settings
        prompt_tokens = self.estimate(messages, len(json.dumps(list(tools))) if tools else 0)
        output = self.dialect.max_output(settings.max_output_tokens)
        output = self._spending.affordable_output(prompt_tokens, output, settings.prices)
        dollars = settings.prices.dollars(prompt_tokens, output) if settings.prices else None
        entry = {"purpose": purpose, "model": settings.name, "prompt_tokens": prompt_tokens, "dollars": dollars}
        self._emit("call", {**entry, **(details or {})})
        start = time.monotonic()
        try:
            reply = self._ask(messages, output, tools, stop, prompt_tokens)
        except (ModelError, BudgetSpent) as error:
            self._emit("call failed", {"purpose": purpose, "error": str(error)})
            raise
        seconds = round(time.monotonic() - start, 3)
        self._emit("reply", {"purpose": purpose, "model": settings.name, **reply.record(), "seconds": seconds})
        return reply

    @abc.abstractmethod
    def _ask(
        self,
        messages: Sequence[Message],
        max_output: int,
        tools: Sequence[Mapping[str, Any]],
        stop: Sequence[str],
        estimated: int,
    ) -> Reply:
        """Ask the model; ``estimated`` are the tokens of the prompt, as far as known. Errors as in :meth:`complete`."""

    def _adapt(
        self, request: dict[str, Any], *, status: int | None, code: object, param: str | None, text: str
    ) -> bool:
        """Adapt the dialect to an error of the server; tell whether the request should be made again.

        Raises:
            ContextFull: if the prompt was too long.
        """
        if status == _TOO_LARGE or (
            status in _BAD_REQUEST_STATUSES and (code == "context_length_exceeded" or _TOO_LONG.search(text))
        ):
            self._context_full(text)
        if status in _BAD_REQUEST_STATUSES and self.dialect.learn(request, param, text):
            self._emit("dialect", {"model": self.settings.name, **self.dialect.record(), "because": text})
            return True
        return False

    def _context_full(self, text: str) -> NoReturn:
        self.dialect.learn_context(text)
        self._emit("dialect", {"model": self.settings.name, **self.dialect.record(), "because": text})
        raise ContextFull(text) from None

    def _measure(self, messages: Sequence[Message], prompt_tokens: int) -> None:
        """Learn from a reply how the model counts."""
        self._bytes_a_token = min(max(sum(map(message_bytes, messages)) / prompt_tokens, 1.0), 8.0)


def one_line(value: object) -> str:
    """Return a text in one line of at most 500 characters."""
    text = " ".join(str(value).split()) or type(value).__name__
    return text if len(text) <= 500 else text[:500] + "…"  # noqa: PLR2004
