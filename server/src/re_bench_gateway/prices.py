"""What models cost and how much they read and write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from re_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from re_bench_gateway.settings import Budget, Model

_FIELDS = ("dollars_in", "dollars_out", "context", "max_output")
_PICODOLLARS = 1_000_000  # a token, for each dollar a million tokens


@dataclass(frozen=True, slots=True)
class Terms:
    """What a model costs, and its bounds in tokens. Prices are None if unknown."""

    dollars_in: float | None
    """Dollars a million prompt tokens."""
    dollars_out: float | None
    """Dollars a million completion tokens."""
    context: int
    """The most tokens of a prompt."""
    max_output: int
    """The most tokens of one completion."""

    @property
    def priced(self) -> bool:
        """Whether both prices are known."""
        return self.dollars_in is not None and self.dollars_out is not None

    def picodollars(self, prompt: int, completion: int) -> int:
        """Return the price of so many tokens in units of 1e-12 dollars, whole so that sums are exact."""
        prices = ((self.dollars_in or 0.0, prompt), (self.dollars_out or 0.0, completion))
        return sum(round(price * _PICODOLLARS) * tokens for price, tokens in prices)


KNOWN = {
    # OpenAI, "New embedding models and API updates", 25 January 2024; bounds: OpenAI's page of the model.
    "gpt-3.5-turbo-0125": Terms(0.50, 1.50, context=16_385, max_output=4_096),
}
"""Models by the name that the upstream knows them by."""


def terms_of(model: Model) -> Terms:
    """Return the terms of a model: what its settings say, else what is known.

    Raises:
        UsageError: if its bounds are neither set nor known.
    """
    known = KNOWN.get(model.asks_for or model.name)
    chosen = {name: _first(getattr(model, name), getattr(known, name, None)) for name in _FIELDS}
    if not chosen["context"] or not chosen["max_output"]:
        raise UsageError(f"nothing is known of the model {model.name!r}: set its context and max_output, in tokens")
    return Terms(**chosen)


def check_priced(terms: Iterable[tuple[str, Terms]], budget: Budget) -> None:
    """Check that a budget in dollars can be kept.

    Raises:
        UsageError: if there is one, and a model without a price.
    """
    unknown = [name for name, each in terms if not each.priced]
    if budget.dollars is not None and unknown:
        raise UsageError(f"a budget in dollars needs prices: set dollars_in and dollars_out of {', '.join(unknown)}")


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
