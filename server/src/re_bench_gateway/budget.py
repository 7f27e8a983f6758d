"""Ledgers: what a call may cost is reserved before it is made, and settled by what it did cost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from re_bench_gateway.settings import Budget

_PICO = 10**12


@dataclass(frozen=True, slots=True)
class Amount:
    """What calls cost, in whole numbers, so that sums are exact."""

    requests: int = 0
    prompt: int = 0
    completion: int = 0
    picodollars: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of prompts and completions."""
        return self.prompt + self.completion

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.requests + other.requests,
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.picodollars + other.picodollars,
        )

    def __sub__(self, other: Amount) -> Amount:
        return self + Amount(-other.requests, -other.prompt, -other.completion, -other.picodollars)


class BudgetCheck(Enum):
    """Whether a budget covers an amount."""

    NOW = auto()
    LATER = auto()
    """Perhaps when running calls have cost less than is reserved for them."""
    NEVER = auto()


class Ledger:
    """What is spent and reserved of a budget, and of the larger one that it is part of.

    Spent and reserved together never exceed the budget, unless a call costs more than was reserved for it.
    """

    def __init__(self, budget: Budget, parent: Ledger | None = None) -> None:
        self.budget = budget
        self.parent = parent
        self.spent = Amount()
        self.reserved = Amount()

    def check(self, amount: Amount) -> BudgetCheck:
        """Tell whether the amount is covered."""
        if any(exceeds(ledger.spent + amount, ledger.budget) for ledger in self._chain()):
            return BudgetCheck.NEVER
        if any(exceeds(ledger.spent + ledger.reserved + amount, ledger.budget) for ledger in self._chain()):
            return BudgetCheck.LATER
        return BudgetCheck.NOW

    def reserve(self, amount: Amount) -> None:
        """Set an amount aside.

        Raises:
            ValueError: if it does not fit now.
        """
        if self.check(amount) is not BudgetCheck.NOW:
            raise ValueError(f"the budget does not cover {amount}")
        for ledger in self._chain():
            ledger.reserved += amount

    def settle(self, reserved: Amount, spent: Amount) -> None:
        """Give back what was reserved for a call, and charge what it did cost."""
        for ledger in self._chain():
            ledger.reserved -= reserved
            ledger.spent += spent

    def remaining(self) -> tuple[int | None, int | None, int | None]:
        """Return the picodollars, tokens and requests that are neither spent nor reserved; None without a limit."""
        left: list[tuple[int | None, int | None, int | None]] = []
        for ledger in self._chain():
            used = ledger.spent + ledger.reserved
            pairs = zip(_limits(ledger.budget), _measures(used), strict=True)
            dollars, tokens, requests = (None if limit is None else max(limit - use, 0) for limit, use in pairs)
            left.append((dollars, tokens, requests))
        dollars, tokens, requests = (_least(column) for column in zip(*left, strict=True))
        return dollars, tokens, requests

    def _chain(self) -> Iterator[Ledger]:
        ledger: Ledger | None = self
        while ledger is not None:
            yield ledger
            ledger = ledger.parent


def exceeds(amount: Amount, budget: Budget) -> bool:
    """Tell whether an amount exceeds a budget."""
    pairs = zip(_limits(budget), _measures(amount), strict=True)
    return any(limit is not None and measure > limit for limit, measure in pairs)


def _limits(budget: Budget) -> tuple[int | None, int | None, int | None]:
    dollars = None if budget.dollars is None else round(budget.dollars * _PICO)
    return dollars, budget.tokens, budget.requests


def _measures(amount: Amount) -> tuple[int, int, int]:
    return amount.picodollars, amount.tokens, amount.requests


def _least(values: tuple[int | None, ...]) -> int | None:
    return min((value for value in values if value is not None), default=None)
