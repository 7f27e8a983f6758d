"""One model behind an OpenAI-compatible server: asked with retries, within the caps, in words that it understands."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import openai

from mlab_agent.models.backoff import wait_before
from mlab_agent.models.dialect import Dialect
from mlab_agent.models.errors import BudgetSpent, ContextFull, ModelError
from mlab_agent.models.messages import Message, Reply, ToolCall, message_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mlab_agent.models.prices import Prices
    from mlab_agent.models.spending import Spending

__all__ = ["Model", "ModelSettings"]

_TOO_LONG = re.compile(
    r"context.?length|context.?window|maximum context|prompt is too long|too many tokens|context_length_exceeded",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_RETRIED = frozenset({408, 409, 425, 429})
_REFUSED = frozenset({400, 422})
_TOO_LARGE = 413
_CERTAIN_BYTES_A_TOKEN = 2.5  # before the first reply has shown how the model counts
_MARGIN = 1.1


@dataclass(frozen=True)
class ModelSettings:
    """How to ask one model."""

    name: str
    base_url: str
    prices: Prices | None = None
    context_tokens: int = 100_000
    """Prompt and reply together."""
    max_output_tokens: int = 8_192
    temperature: float | None = None
    timeout_s: float = 600.0
    attempts: int = 8
    """How often a call is tried before it fails."""
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0


class Model:
    """A model to ask. ``note(kind, fields)`` is told of every call, retry and reply, as they happen."""

    def __init__(
        self,
        settings: ModelSettings,
        key: str,
        spending: Spending,
        note: Callable[[str, dict[str, Any]], None],
        seconds_left: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.settings = settings
        self.dialect = Dialect(settings.context_tokens)
        self._spending = spending
        self._note = note
        self._seconds_left = seconds_left
        self._bytes_a_token = _CERTAIN_BYTES_A_TOKEN
        self._client = openai.OpenAI(api_key=key or "none", base_url=settings.base_url, max_retries=0)

    def estimate(self, messages: Sequence[Message], beside: int = 0) -> int:
        """Return about how many tokens messages are, rather too many than too few; ``beside`` are further bytes."""
        return int((sum(map(message_bytes, messages)) + beside) / self._bytes_a_token * _MARGIN) + 8

    def complete(
        self,
        messages: Sequence[Message],
        *,
        purpose: str,
        tools: Sequence[Mapping[str, Any]] = (),
        stop: Sequence[str] = (),
        about: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Ask the model once, and again after passing failures.

        Args:
            messages: What is said.
            purpose: What for, for the trace.
            tools: Native tools; left out where the server refuses them.
            stop: Texts that end the reply.
            about: Further fields of the trace's entry.

        Raises:
            BudgetSpent: if the caps or the time do not allow the call.
            ContextFull: if the prompt is longer than the model reads.
            ModelError: if the server refuses, or all attempts failed.
        """
        settings = self.settings
        prompt_tokens = self.estimate(messages, len(json.dumps(list(tools))) if tools else 0)
        output = self.dialect.output(settings.max_output_tokens)
        output = self._spending.affordable_output(prompt_tokens, output, settings.prices)
        most = settings.prices.dollars(prompt_tokens, output) if settings.prices else 0.0
        entry = {"purpose": purpose, "model": settings.name, "prompt_tokens": prompt_tokens, "dollars": most}
        self._note("call", {**entry, **(about or {})})
        started = time.monotonic()
        wanted = {
            "model": settings.name,
            "messages": list(messages),
            "max_output": output,
            "temperature": settings.temperature,
            "stop": list(stop) or None,
            "tools": list(tools) or None,
            "parallel_tool_calls": False if tools else None,
        }
        try:
            completion = self._attempts(wanted)
            reply = self._read(completion, messages, prompt_tokens)
        except (ModelError, BudgetSpent) as error:
            self._note("call failed", {"purpose": purpose, "error": str(error)})
            raise
        self._note("reply", {"purpose": purpose, **reply.record(), "seconds": round(time.monotonic() - started, 3)})
        return reply

    def _attempts(self, wanted: dict[str, Any]) -> Any:
        attempt = 1
        while True:
            wanted["max_output"] = self.dialect.output(wanted["max_output"])
            request = self.dialect.request(**wanted)
            try:
                completion = self._client.chat.completions.create(**request, timeout=self._timeout())
                if getattr(completion, "choices", None):
                    return completion
                failure, headers = "the server's answer has no choices: " + _short(completion), {}
            except openai.APIStatusError as error:
                if self._understood(request, error):
                    continue
                failure, headers = _short(error), dict(error.response.headers)
            except (openai.APIConnectionError, openai.APIResponseValidationError, ValueError) as error:
                failure, headers = _short(error), {}
            attempt += 1
            self._wait(attempt, failure, {name.lower(): value for name, value in headers.items()})

    def _understood(self, request: dict[str, Any], error: openai.APIStatusError) -> bool:
        """Tell whether the request is to be put in other words; raise if no repetition helps."""
        text = _short(error)
        status = error.status_code
        if status == _TOO_LARGE or (
            status in _REFUSED and (error.code == "context_length_exceeded" or _TOO_LONG.search(text))
        ):
            self.dialect.learn_context(text)
            self._note("dialect", {"model": self.settings.name, **self.dialect.record(), "because": text})
            raise ContextFull(text) from None
        if status in _REFUSED and self.dialect.learn(request, error.param, text):
            self._note("dialect", {"model": self.settings.name, **self.dialect.record(), "because": text})
            return True
        passing = status in _RETRIED or status >= 500  # noqa: PLR2004
        if not passing or error.code == "insufficient_quota" or _QUOTA.search(text):
            raise ModelError(f"{self.settings.base_url} refused model {self.settings.name}: {text}") from None
        return False

    def _wait(self, attempt: int, failure: str, headers: Mapping[str, str]) -> None:
        settings = self.settings
        if attempt > settings.attempts:
            raise ModelError(f"{settings.base_url} did not answer in {settings.attempts} attempts; the last: {failure}")
        seconds = wait_before(attempt, headers, first_s=settings.first_wait_s, longest_s=settings.longest_wait_s)
        left = self._seconds_left()
        if left is not None and seconds >= left:
            msg = f"the time is over before {settings.base_url} can be asked again; the last failure: {failure}"
            raise BudgetSpent(msg, cap="time")
        self._note("retry", {"attempt": attempt, "wait_s": round(seconds, 3), "error": failure})
        time.sleep(seconds)

    def _timeout(self) -> float:
        left = self._seconds_left()
        if left is None:
            return self.settings.timeout_s
        if left <= 0:
            raise BudgetSpent("the time is over", cap="time")
        return min(self.settings.timeout_s, left)

    def _read(self, completion: Any, messages: Sequence[Message], estimated: int) -> Reply:
        choice = completion.choices[0]
        message = choice.message
        text = _text(getattr(message, "content", None))
        call = next(
            (each for each in getattr(message, "tool_calls", None) or () if getattr(each, "function", None)), None
        )
        tool = ToolCall(str(call.function.name or ""), _arguments(call.function.arguments)) if call else None
        usage = getattr(completion, "usage", None)
        prompt = getattr(usage, "prompt_tokens", None)
        completed = getattr(usage, "completion_tokens", None)
        if prompt:
            seen = sum(map(message_bytes, messages)) / prompt
            self._bytes_a_token = min(max(seen, 1.0), 8.0)
        prompt = estimated if prompt is None else int(prompt)
        written = len(text) + (len(tool.arguments) if tool else 0)
        completed = int(written / _CERTAIN_BYTES_A_TOKEN) if completed is None else int(completed)
        prices = self.settings.prices
        dollars = prices.dollars(prompt, completed) if prices else 0.0
        return Reply(text, tool, choice.finish_reason == "length", prompt, completed, dollars)


def _text(content: Any) -> str:
    """Return the text of a message's content: a string, nothing, or a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")


def _arguments(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(given or {})


def _short(thing: object) -> str:
    text = " ".join(str(thing).split()) or type(thing).__name__
    return text if len(text) <= 500 else text[:500] + "…"  # noqa: PLR2004
