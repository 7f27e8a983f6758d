"""What models cost, what a run has spent on them, and the caps on it, which are checked *before* every call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOTALS = ("prompt_tokens", "completion_tokens", "dollars", "calls", "unpriced_calls")
_MIN_OUTPUT_TOKENS = 200  # a reply that may be no longer is not worth its prompt


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
    """Running totals of a run, over all of its models."""

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
        for name in _TOTALS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def cost(self) -> str:
        """The dollars in words, which say so where prices are not known."""
        if not self.unpriced_calls:
            return f"${self.dollars:.4f}"
        if self.unpriced_calls == self.calls:
            return "cost unknown"
        return f"${self.dollars:.4f} and the unknown cost of {self.unpriced_calls} of {self.calls} calls"

    def record(self) -> dict[str, float]:
        """Return the totals as they are written to the trace."""
        return {name: getattr(self, name) for name in _TOTALS}

    def restore(self, record: Mapping[str, Any]) -> None:
        """Set the totals to those of a trace's record."""
        for name in _TOTALS:
            setattr(self, name, record[name])

    def affordable_output(self, prompt_tokens: int, output_tokens: int, prices: Prices | None) -> int:
        """Return how many tokens the reply to such a prompt may have, at most ``output_tokens``.

        Raises:
            BudgetSpent: if the caps leave no useful reply.
        """
        least = min(_MIN_OUTPUT_TOKENS, output_tokens)
        if self.caps.tokens is not None:
            left = self.caps.tokens - self.tokens - prompt_tokens
            if left < least:
                raise BudgetSpent(
                    f"{self.tokens} of {self.caps.tokens} tokens are used; the next call needs {prompt_tokens + least}",
                    cap="tokens",
                )
            output_tokens = min(output_tokens, left)
        if self.caps.dollars is not None and prices is not None:
            needed = prices.dollars(prompt_tokens, least)
            left_dollars = self.caps.dollars - self.dollars
            if needed > left_dollars:
                raise BudgetSpent(
                    f"${self.dollars:.4f} of ${self.caps.dollars:.4f} are spent; the next call costs ${needed:.4f}",
                    cap="cost",
                )
            if prices.completion > 0:
                affordable = (left_dollars - prices.dollars(prompt_tokens, 0)) * 1e6 / prices.completion
                output_tokens = min(output_tokens, max(least, int(affordable)))
        return output_tokens
