"""Language models: their messages, replies, prices and caps, and what a server does not support.

Messages are in the format of OpenAI's chat completions. Servers that call themselves compatible with it differ: newer
models need ``max_completion_tokens``, others know only ``max_tokens``; some refuse ``stop``, ``temperature`` or tools.
An error that names such a parameter changes the :class:`Dialect`, and the request is made again.
"""

from __future__ import annotations

import abc
import json
import re
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Message = dict[str, Any]
BYTES_A_TOKEN = 2.5
"""Until the first reply has shown how the model counts."""
_ESTIMATE_MARGIN = 1.1
_MIN_OUTPUT_TOKENS = 200  # a reply that may be no longer is not worth its prompt
_NO_TOOLS = re.compile(r"\btools?\b|tool_choice|function.?call", re.IGNORECASE)
_OUTPUT = re.compile(r"(?:at most|less than or equal to|maximum (?:value|of)|<=)\s*(\d[\d,]*)", re.IGNORECASE)
_CONTEXT = re.compile(r"maximum context length (?:is|of) (\d[\d,]*)", re.IGNORECASE)
_DROPPABLE = ("stop", "temperature", "seed", "parallel_tool_calls")
_TOO_LONG = re.compile(
    r"context.?length|context.?window|maximum context|prompt is too long|too many tokens|context_length_exceeded",
    re.IGNORECASE,
)
_BAD_REQUEST_STATUSES = frozenset({400, 422})
_TOO_LARGE = 413


class ModelError(Exception):
    """A call failed for good: the model could not be asked, or its answer not be read. The message says why."""


class ContextFull(ModelError):  # noqa: N818 - named for the state that it reports
    """The prompt is longer than the model's context."""


class BudgetSpent(Exception):  # noqa: N818 - a limit that the user set, not a failure
    """A cap does not allow another call; raised before the call. ``cap`` is ``cost``, ``tokens`` or ``time``."""

    def __init__(self, text: str, *, cap: str) -> None:
        super().__init__(text)
        self.cap = cap


@dataclass(frozen=True)
class Prices:
    """Dollars a million tokens."""

    prompt: float
    completion: float

    def dollars(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Return the price of so many tokens."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


_KNOWN = {
    # Dollars a million prompt and completion tokens, and the context in tokens: OpenAI's pages of the models, 2025.
    # Providers change prices; `--price` overrides these.
    "gpt-4o": (Prices(2.50, 10.0), 128_000),
    "gpt-4o-mini": (Prices(0.15, 0.60), 128_000),
    "gpt-4.1": (Prices(2.0, 8.0), 1_047_576),
    "gpt-4.1-mini": (Prices(0.40, 1.60), 1_047_576),
    "gpt-4.1-nano": (Prices(0.10, 0.40), 1_047_576),
    "o3": (Prices(2.0, 8.0), 200_000),
    "o4-mini": (Prices(1.10, 4.40), 200_000),
    "gpt-5": (Prices(1.25, 10.0), 400_000),
    "gpt-5-mini": (Prices(0.25, 2.0), 400_000),
    "gpt-5-nano": (Prices(0.05, 0.40), 400_000),
}


def known_prices(model: str) -> Prices | None:
    """Return a model's prices if they are known."""
    return _KNOWN[model][0] if model in _KNOWN else None


def known_context(model: str) -> int | None:
    """Return how many tokens a model reads and writes together, if that is known."""
    return _KNOWN[model][1] if model in _KNOWN else None


@dataclass(frozen=True)
class Caps:
    """The most that a run may spend; None for no cap."""

    dollars: float | None = None
    tokens: int | None = None
    """Prompt and completion tokens together."""


@dataclass
class Spending:
    """Running totals of a run, over all of its models, and the caps, which are checked *before* every call."""

    caps: Caps = field(default_factory=Caps)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0
    calls: int = 0
    unpriced_calls: int = 0
    """Calls of models whose prices are not known; ``dollars`` lacks them."""

    @property
    def tokens(self) -> int:
        """Tokens so far, prompts and completions together."""
        return self.prompt_tokens + self.completion_tokens

    def add(self, prompt_tokens: int, completion_tokens: int, dollars: float | None) -> None:
        """Count a call, whose price may be unknown."""
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        self.dollars += dollars or 0.0
        self.calls += 1
        self.unpriced_calls += dollars is None

    def merge(self, other: Spending) -> None:
        """Count what was spent elsewhere, too."""
        self.restore({name: total + getattr(self, name) for name, total in other.record().items()})

    @property
    def cost(self) -> str:
        """The dollars as text, which says so where prices are not known."""
        if not self.unpriced_calls:
            return f"${self.dollars:.4f}"
        if self.unpriced_calls == self.calls:
            return "cost unknown"
        return f"${self.dollars:.4f} and the unknown cost of {self.unpriced_calls} of {self.calls} calls"

    def record(self) -> dict[str, float]:
        """Return the totals as they are written to the trace."""
        return {name: total for name, total in vars(self).items() if name != "caps"}

    def restore(self, record: Mapping[str, Any]) -> None:
        """Set the totals to those of a trace's record."""
        vars(self).update({name: record[name] for name in self.record()})

    def affordable_output(self, prompt_tokens: int, output_tokens: int, prices: Prices | None) -> int:
        """Return how many tokens the reply may have, at most ``output_tokens``; BudgetSpent if a cap leaves too few."""
        least = min(_MIN_OUTPUT_TOKENS, output_tokens)
        if (cap := self.caps.tokens) is not None:
            left, needed = cap - self.tokens, prompt_tokens + least
            if needed > left:
                text = f"{self.tokens} of {cap} tokens are used; the next call needs {needed}"
                raise BudgetSpent(text, cap="tokens")
            output_tokens = min(output_tokens, left - prompt_tokens)
        if (limit := self.caps.dollars) is not None and prices is not None:
            price, unspent = prices.dollars(prompt_tokens, least), limit - self.dollars
            if price > unspent:
                text = f"${self.dollars:.4f} of ${limit:.4f} are spent; the next call costs ${price:.4f}"
                raise BudgetSpent(text, cap="cost")
            if prices.completion > 0:
                affordable = (unspent - prices.dollars(prompt_tokens, 0)) * 1e6 / prices.completion
                output_tokens = min(output_tokens, max(least, int(affordable)))
        return output_tokens


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
        record = asdict(self)
        return {"cut": record.pop("truncated"), **record}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Reply:
        """Return the reply of a trace's record."""
        call, names = record["call"], ("prompt_tokens", "completion_tokens", "dollars")
        return cls(record["text"], call and ToolCall(**call), record["cut"], *(record[name] for name in names))


def user(text: str) -> Message:
    """Return a user message."""
    return {"role": "user", "content": text}


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

    def request(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a request, without those that are None or that the server refused before."""
        request = {name: value for name, value in parameters.items() if value is not None and name not in self.dropped}
        if "max_output" in request:
            request[self.length] = self.max_output(request.pop("max_output"))
        if not self.tools:
            request = {name: value for name, value in request.items() if name not in {"tools", "parallel_tool_calls"}}
        return request

    def learn(self, request: Mapping[str, Any], parameter: object, text: str) -> bool:
        """Learn from an error (status 400 or 422); tell whether the request should be made again."""
        named = f"{parameter or ''} {text}"
        refused = next((name for name in _DROPPABLE if name in request and re.search(rf"\b{name}\b", named)), None)
        limit = _number(_OUTPUT, text) if "tokens" in text else None
        if limit and limit < request.get(self.length, 0):
            self.most_output = limit
        elif self.length in request and self.length in named:
            if self.length == "max_tokens":
                return False
            self.length = "max_tokens"
        elif refused:
            self.dropped.add(refused)
        elif "tools" in request and _NO_TOOLS.search(named):
            self.tools = False
        else:
            return False
        return True

    def learn_context(self, text: str) -> None:
        """Learn from an error about a prompt that was too long: take the server's limit, else halve ours."""
        limit = _number(_CONTEXT, text)
        self.context_tokens = limit if limit and limit < self.context_tokens else self.context_tokens // 2

    def max_output(self, tokens: int) -> int:
        """Return how many of these tokens a reply may have: at most a quarter of the context."""
        return max(1, min(tokens, self.context_tokens // 4, self.most_output or tokens))

    def record(self) -> dict[str, Any]:
        """Return the dialect as it is written to the trace."""
        return {**vars(self), "dropped": sorted(self.dropped)}

    def restore(self, record: Mapping[str, Any]) -> None:
        """Become the dialect of a trace's record."""
        vars(self).update({name: record[name] for name in vars(self)} | {"dropped": set(record["dropped"])})


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    """Return the limit that an error names, as in ``this model supports at most 4,096 completion tokens``."""
    match = pattern.search(text)
    return int(match[1].replace(",", "")) if match else None


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """What the agent knows of a model, and how its client asks it."""

    name: str
    prices: Prices | None = None
    context_tokens: int = 100_000
    """Prompt and reply together."""
    max_output_tokens: int = 8_192
    base_url: str = ""
    temperature: float | None = None
    seed: int | None = None
    timeout_s: float = 600.0
    attempts: int = 8
    """How often a call is tried before it fails."""
    first_wait_s: float = 1.0


class LanguageModel(abc.ABC):
    """A model. ``emit(kind, fields)`` is called for every call and reply, as they happen."""

    def __init__(
        self, settings: ModelSettings, spending: Spending, emit: Callable[[str, dict[str, Any]], None]
    ) -> None:
        self.settings = settings
        self.dialect = Dialect(settings.context_tokens)
        self._spending = spending
        self._emit = emit
        self._bytes_a_token = BYTES_A_TOKEN

    def estimate(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()) -> int:
        """Return about how many tokens messages and tools have, rather too many than too few."""
        return int(_bytes([*messages, *tools]) / self._bytes_a_token * _ESTIMATE_MARGIN) + 8

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

        ``purpose`` and ``details`` are for the trace; ``stop`` are texts that end the reply. Raises BudgetSpent if the
        caps or the time do not allow the call, ContextFull if the prompt is too long, else ModelError.
        """
        settings = self.settings
        prompt_tokens = self.estimate(messages, tools)
        output = self.dialect.max_output(settings.max_output_tokens)
        output = self._spending.affordable_output(prompt_tokens, output, settings.prices)
        dollars = settings.prices.dollars(prompt_tokens, output) if settings.prices else None
        entry = {"purpose": purpose, "model": settings.name}
        self._emit("call", {**entry, "prompt_tokens": prompt_tokens, "dollars": dollars, **(details or {})})
        parameters: dict[str, Any] = {"messages": list(messages), "max_output": output, "stop": list(stop) or None}
        if tools:
            parameters |= {"tools": list(tools), "parallel_tool_calls": False}
        start = time.monotonic()
        try:
            reply = self._ask(parameters, prompt_tokens)
        except (ModelError, BudgetSpent) as error:
            self._emit("call failed", {"purpose": purpose, "error": str(error)})
            raise
        self._emit("reply", {**entry, **reply.record(), "seconds": round(time.monotonic() - start, 3)})
        return reply

    @abc.abstractmethod
    def _ask(self, parameters: dict[str, Any], estimated: int) -> Reply:
        """Ask the model, in its dialect; ``estimated`` are the tokens of the prompt, as far as known."""

    def _adapt(self, request: Mapping[str, Any], error: Exception) -> bool:
        """Adapt the dialect to an error of the server; tell whether the request should be made again.

        Raises:
            ContextFull: if the prompt was too long.
        """
        text, status = one_line(error), getattr(error, "status_code", None)
        refused = status in _BAD_REQUEST_STATUSES
        code = getattr(error, "code", None)
        if status == _TOO_LARGE or (refused and (code == "context_length_exceeded" or _TOO_LONG.search(text))):
            self._context_full(text)
        if refused and self.dialect.learn(request, getattr(error, "param", None), text):
            self._note_dialect(text)
            return True
        return False

    def _context_full(self, text: str) -> NoReturn:
        self.dialect.learn_context(text)
        self._note_dialect(text)
        raise ContextFull(text) from None

    def _note_dialect(self, text: str) -> None:
        self._emit("dialect", {"model": self.settings.name, **self.dialect.record(), "because": text})

    def _measure(self, messages: Sequence[Message], prompt_tokens: int) -> None:
        """Learn from a reply how the model counts."""
        self._bytes_a_token = min(max(_bytes(messages) / prompt_tokens, 1.0), 8.0)


def _bytes(values: Sequence[Any]) -> int:
    return len(json.dumps(values, ensure_ascii=False).encode(errors="replace"))


def one_line(value: object) -> str:
    """Return a text in one line of at most 500 characters."""
    text = " ".join(str(value).split()) or type(value).__name__
    return text if len(text) <= 500 else text[:500] + "…"  # noqa: PLR2004
