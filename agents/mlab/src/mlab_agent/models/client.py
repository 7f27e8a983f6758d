"""The client of one model at an OpenAI-compatible server: with retries, within the caps, in the server's dialect."""

from __future__ import annotations

import email.utils
import json
import random
import re
import time
from typing import TYPE_CHECKING, Any

import openai
from typing_extensions import override

from mlab_agent.clock import Waits
from mlab_agent.models.costs import BudgetSpent
from mlab_agent.models.model import BYTES_A_TOKEN, LanguageModel, Message, ModelError, Reply, ToolCall, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mlab_agent.models.costs import Spending
    from mlab_agent.models.model import ModelSettings

_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_RETRIED_STATUSES = frozenset({408, 409, 425, 429})
_LONGEST_REQUESTED_WAIT_S = 3600.0  # what a server asks for beyond that is no temporary failure


class Model(LanguageModel):
    """A model of a server. ``emit(kind, fields)`` is called for retries, too.

    What is no answering of the model's is a wait: attempts that fail for a temporary reason, and the pauses after.
    """

    settings: ModelSettings

    def __init__(
        self,
        settings: ModelSettings,
        key: str,
        spending: Spending,
        emit: Callable[[str, dict[str, Any]], None],
        seconds_left: Callable[[], float | None] = lambda: None,
        *,
        waits: Waits | None = None,
    ) -> None:
        super().__init__(settings, spending, emit)
        self._waits = waits or Waits()
        self._seconds_left = seconds_left
        self._client = openai.OpenAI(api_key=key or "none", base_url=settings.base_url, max_retries=0)

    @override
    def _ask(
        self,
        messages: Sequence[Message],
        max_output: int,
        tools: Sequence[Mapping[str, Any]],
        stop: Sequence[str],
        estimated: int,
    ) -> Reply:
        parameters = {
            "model": self.settings.name,
            "messages": list(messages),
            "max_output": max_output,
            "temperature": self.settings.temperature,
            "seed": self.settings.seed,
            "stop": list(stop) or None,
            "tools": list(tools) or None,
            "parallel_tool_calls": False if tools else None,
        }
        return self._read(self._request(parameters), messages, estimated)

    def _request(self, parameters: dict[str, Any]) -> Any:
        attempt = 1
        while True:
            parameters["max_output"] = self.dialect.max_output(parameters["max_output"])
            request = self.dialect.request(**parameters)
            timeout, start = self._timeout(), time.monotonic()
            try:
                completion = self._client.chat.completions.create(**request, timeout=timeout)
                if getattr(completion, "choices", None):
                    return completion
                failure, headers = "the server's answer has no choices: " + one_line(completion), {}
            except openai.APIStatusError as error:
                if self._is_adapted(request, error):
                    continue
                failure, headers = one_line(error), dict(error.response.headers)
            except openai.APITimeoutError as error:
                failure, headers = one_line(error), {}
                if timeout < self.settings.timeout_s:  # our own time was over, the server's was not
                    start = time.monotonic()
            except (openai.APIConnectionError, openai.APIResponseValidationError, ValueError) as error:
                failure, headers = one_line(error), {}
            self._waits.add(time.monotonic() - start, _reason(failure))
            attempt += 1
            self._wait(attempt, failure, {name.lower(): value for name, value in headers.items()})

    def _is_adapted(self, request: dict[str, Any], error: openai.APIStatusError) -> bool:
        """Adapt the dialect to an error; tell whether it changed. Raise if no repetition can help."""
        text, status = one_line(error), error.status_code
        if self._adapt(request, status=status, code=error.code, param=error.param, text=text):
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
        if seconds > _LONGEST_REQUESTED_WAIT_S:
            raise ModelError(f"{settings.base_url} asks to wait for {seconds:.0f} s; its failure: {failure}")
        self._emit("retry", {"attempt": attempt, "wait_s": round(seconds, 3), "error": failure})
        with self._waits.waiting(_reason(failure)):
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
            self._measure(messages, prompt)
        prompt = estimated if prompt is None else int(prompt)
        chars = len(text) + (len(tool.arguments) if tool else 0)
        completed = int(chars / BYTES_A_TOKEN) if completed is None else int(completed)
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


def _reason(failure: str) -> str:
    return f"models' server: {failure}"


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
