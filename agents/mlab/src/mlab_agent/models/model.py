"""What all models share: calls within the caps, their events, estimates of lengths, what a server does not support."""

from __future__ import annotations

import abc
import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from mlab_agent.models.costs import BudgetSpent
from mlab_agent.models.dialect import Dialect
from mlab_agent.models.messages import Message, Reply, message_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mlab_agent.models.costs import Prices, Spending

_TOO_LONG = re.compile(
    r"context.?length|context.?window|maximum context|prompt is too long|too many tokens|context_length_exceeded",
    re.IGNORECASE,
)
_BAD_REQUEST_STATUSES = frozenset({400, 422})
_TOO_LARGE = 413
BYTES_A_TOKEN = 2.5
"""Until the first reply has shown how the model counts."""
_ESTIMATE_MARGIN = 1.1


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
