"""What was spent on models in all, and the caps on it, which are asked *before* every call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlab_agent.models.errors import BudgetSpent

if TYPE_CHECKING:
    from mlab_agent.models.prices import Prices

__all__ = ["Caps", "Spending"]

_LEAST_OUTPUT = 200  # tokens; a reply that may be no longer is not worth its prompt


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

    @property
    def tokens(self) -> int:
        """Tokens so far, prompts and completions together."""
        return self.prompt_tokens + self.completion_tokens

    def add(self, prompt_tokens: int, completion_tokens: int, dollars: float) -> None:
        """Count a call."""
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        self.dollars += dollars
        self.calls += 1

    def affordable_output(self, prompt_tokens: int, wanted: int, prices: Prices | None) -> int:
        """Return how many tokens the reply to such a prompt may have, at most those wanted.

        Raises:
            BudgetSpent: if the caps leave no useful reply.
        """
        least = min(_LEAST_OUTPUT, wanted)
        if self.caps.tokens is not None:
            left = self.caps.tokens - self.tokens - prompt_tokens
            if left < least:
                msg = (
                    f"{self.tokens} of {self.caps.tokens} tokens are used; the next call needs {prompt_tokens + least}"
                )
                raise BudgetSpent(msg, cap="tokens")
            wanted = min(wanted, left)
        if self.caps.dollars is not None and prices is not None:
            needed = prices.dollars(prompt_tokens, least)
            left_dollars = self.caps.dollars - self.dollars
            if needed > left_dollars:
                msg = f"${self.dollars:.4f} of ${self.caps.dollars:.4f} are spent; the next call costs ${needed:.4f}"
                raise BudgetSpent(msg, cap="cost")
            if prices.completion > 0:
                affordable = (left_dollars - prices.dollars(prompt_tokens, 0)) * 1e6 / prices.completion
                wanted = min(wanted, max(least, int(affordable)))
        return wanted
