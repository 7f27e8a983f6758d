"""The client of one model at an OpenAI-compatible server: with retries, within the caps, in the server's dialect."""

from __future__ import annotations

import email.utils
import json
import random
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import openai

from mlab_agent.models.costs import BudgetSpent
from mlab_agent.models.dialect import Dialect
from mlab_agent.models.messages import Message, Reply, ToolCall, message_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mlab_agent.models.costs import Prices, Spending

_TOO_LONG = re.compile(
    r"context.?length|context.?window|maximum context|prompt is too long|too many tokens|context_length_exceeded",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_RETRIED_STATUSES = frozenset({408, 409, 425, 429})
_BAD_REQUEST_STATUSES = frozenset({400, 422})
_TOO_LARGE = 413
_INITIAL_BYTES_A_TOKEN = 2.5  # until the first reply has shown how the model counts
_ESTIMATE_MARGIN = 1.1


class ModelError(Exception):
    """A call failed for good: the model could not be asked, or its answer not be read. The message says why."""


class ContextFull(ModelError):  # noqa: N818 - named for the state that it reports
    """The prompt is longer than the model's context."""


@dataclass(frozen=True)
class ModelSettings:
    """The settings of one model's client."""

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
    """A model. ``emit(kind, fields)`` is called for every call, retry and reply, as they happen."""

    def __init__(
        self,
        settings: ModelSettings,
        key: str,
        spending: Spending,
        emit: Callable[[str, dict[str, Any]], None],
        seconds_left: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.settings = settings
        self.dialect = Dialect(settings.context_tokens)
        self._spending = spending
        self._emit = emit
        self._seconds_left = seconds_left
        self._bytes_a_token = _INITIAL_BYTES_A_TOKEN
        self._client = openai.OpenAI(api_key=key or "none", base_url=settings.base_url, max_retries=0)

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
        parameters = {
            "model": settings.name,
            "messages": list(messages),
            "max_output": output,
            "temperature": settings.temperature,
            "stop": list(stop) or None,
            "tools": list(tools) or None,
            "parallel_tool_calls": False if tools else None,
        }
        try:
            completion = self._request(parameters)
            reply = self._read(completion, messages, prompt_tokens)
        except (ModelError, BudgetSpent) as error:
            self._emit("call failed", {"purpose": purpose, "error": str(error)})
            raise
        seconds = round(time.monotonic() - start, 3)
        self._emit("reply", {"purpose": purpose, "model": settings.name, **reply.record(), "seconds": seconds})
        return reply

    def _request(self, parameters: dict[str, Any]) -> Any:
        attempt = 1
        while True:
            parameters["max_output"] = self.dialect.max_output(parameters["max_output"])
            request = self.dialect.request(**parameters)
            try:
                completion = self._client.chat.completions.create(**request, timeout=self._timeout())
                if getattr(completion, "choices", None):
                    return completion
                failure, headers = "the server's answer has no choices: " + _one_line(completion), {}
            except openai.APIStatusError as error:
                if self._adapt(request, error):
                    continue
                failure, headers = _one_line(error), dict(error.response.headers)
            except (openai.APIConnectionError, openai.APIResponseValidationError, ValueError) as error:
                failure, headers = _one_line(error), {}
            attempt += 1
            self._wait(attempt, failure, {name.lower(): value for name, value in headers.items()})

    def _adapt(self, request: dict[str, Any], error: openai.APIStatusError) -> bool:
        """Adapt the dialect to an error; tell whether it changed. Raise if no repetition can help."""
        text = _one_line(error)
        status = error.status_code
        if status == _TOO_LARGE or (
            status in _BAD_REQUEST_STATUSES and (error.code == "context_length_exceeded" or _TOO_LONG.search(text))
        ):
            self.dialect.learn_context(text)
            self._emit("dialect", {"model": self.settings.name, **self.dialect.record(), "because": text})
            raise ContextFull(text) from None
        if status in _BAD_REQUEST_STATUSES and self.dialect.learn(request, error.param, text):
            self._emit("dialect", {"model": self.settings.name, **self.dialect.record(), "because": text})
            return True
        temporary = status in _RETRIED_STATUSES or status >= 500  # noqa: PLR2004
        if not temporary or error.code == "insufficient_quota" or _QUOTA.search(text):
            raise ModelError(f"{self.settings.base_url} refused model {self.settings.name}: {text}") from None
        return False

    def _wait(self, attempt: int, failure: str, headers: Mapping[str, str]) -> None:
        settings = self.settings
        if attempt > settings.attempts:
            raise ModelError(f"{settings.base_url} did not answer in {settings.attempts} attempts; the last: {failure}")
        seconds = wait_before(attempt, headers, first_s=settings.first_wait_s, longest_s=settings.longest_wait_s)
        left = self._seconds_left()
        if left is not None and seconds >= left:
            raise BudgetSpent(
                f"the time is over before {settings.base_url} can be asked again; the last failure: {failure}",
                cap="time",
            )
        self._emit("retry", {"attempt": attempt, "wait_s": round(seconds, 3), "error": failure})
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
            (item for item in getattr(message, "tool_calls", None) or () if getattr(item, "function", None)), None
        )
        tool = ToolCall(str(call.function.name or ""), _arguments(call.function.arguments)) if call else None
        usage = getattr(completion, "usage", None)
        prompt = getattr(usage, "prompt_tokens", None)
        completed = getattr(usage, "completion_tokens", None)
        if prompt:
            measured = sum(map(message_bytes, messages)) / prompt
            self._bytes_a_token = min(max(measured, 1.0), 8.0)
        prompt = estimated if prompt is None else int(prompt)
        chars = len(text) + (len(tool.arguments) if tool else 0)
        completed = int(chars / _INITIAL_BYTES_A_TOKEN) if completed is None else int(completed)
        prices = self.settings.prices
        dollars = prices.dollars(prompt, completed) if prices else None
        return Reply(text, tool, choice.finish_reason == "length", prompt, completed, dollars)


def _text(content: Any) -> str:
    """Return the text of a message's content: a string, nothing, or a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")


def _arguments(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {})


def _one_line(value: object) -> str:
    text = " ".join(str(value).split()) or type(value).__name__
    return text if len(text) <= 500 else text[:500] + "…"  # noqa: PLR2004


def wait_before(attempt: int, headers: Mapping[str, str], *, first_s: float = 1.0, longest_s: float = 60.0) -> float:
    """Return the seconds to wait before attempt number ``attempt`` (2 is the first repeat).

    What the server requests (``Retry-After-Ms``, ``Retry-After`` in seconds or as a date) has priority; else the wait
    doubles each time, less a random part so that many agents do not repeat at once.
    """
    requested = _requested_wait(headers)
    if requested is not None:
        return requested
    return float(min(longest_s, first_s * 2.0 ** (attempt - 2)) * random.uniform(0.5, 1.0))


def _requested_wait(headers: Mapping[str, str]) -> float | None:
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        if not value:
            continue
        try:
            seconds = float(value) * scale
        except ValueError:
            date = email.utils.parsedate_tz(value)
            if date is None:
                continue
            seconds = email.utils.mktime_tz(date) - time.time()
        if 0 <= seconds < float("inf"):
            return seconds
    return None
