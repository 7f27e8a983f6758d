"""Budgets: the most that a call may cost is reserved before it is made, and settled by what it did cost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from decimal import Decimal

from re_bench_gateway.errors import over_budget
from re_bench_gateway.settings import Budget

_UNITS = ("dollars", "tokens", "requests")


@dataclass(frozen=True, slots=True)
class Amount:
    """The cost of calls. Dollars are decimal, so that sums are exact."""

    requests: int = 0
    prompt: int = 0
    completion: int = 0
    dollars: Decimal = Decimal(0)

    @property
    def tokens(self) -> int:
        """Tokens of prompts and completions."""
        return self.prompt + self.completion

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.requests + other.requests,
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.dollars + other.dollars,
        )

    def __sub__(self, other: Amount) -> Amount:
        return self + Amount(-other.requests, -other.prompt, -other.completion, -other.dollars)


class Ledger:
    """What is spent and reserved of a budget, and of the larger one that it is part of.

    Spent and reserved together never exceed the budget, unless a call costs more than was reserved for it.
    """

    def __init__(self, budget: Budget, parent: Ledger | None = None) -> None:
        self.budget = budget
        self.spent = self.reserved = Amount()
        self.chain: tuple[Ledger, ...] = (self, *(parent.chain if parent else ()))
        self.settled = asyncio.Event()

    async def reserve(self, amount: Amount) -> None:
        """Reserve an amount, as soon as running calls leave room for it.

        Raises:
            ApiError: if it does not fit even if the running calls cost nothing.
        """
        # Nothing else runs between a check that succeeds and the reservation.
        while not all(covers(each.budget, each.spent + each.reserved + amount) for each in self.chain):
            if not all(covers(each.budget, each.spent + amount) for each in self.chain):
                left = ", ".join(f"{value} {unit}" for unit, value in self._left().items() if value is not None)
                most = f"{amount.tokens} tokens and {amount.dollars:f} dollars"
                raise over_budget(f"this call may take {most}, and the budget has left: {left}.")
            await self.chain[-1].settled.wait()
        for each in self.chain:
            each.reserved += amount

    def settle(self, reserved: Amount, spent: Amount) -> None:
        """Give back what was reserved for a call, charge what it did cost, and wake the calls that wait."""
        for each in self.chain:
            each.reserved -= reserved
            each.spent += spent
        whole = self.chain[-1]
        whole.settled.set()
        whole.settled = asyncio.Event()

    def remaining(self) -> Budget:
        """Return what is neither spent nor reserved."""
        return Budget.model_validate(self._left())

    def _left(self) -> dict[str, Decimal | None]:
        left = {}
        for unit in _UNITS:
            bounds = [
                max(limit - getattr(each.spent + each.reserved, unit), Decimal(0))
                for each in self.chain
                if (limit := _limit(each.budget, unit)) is not None
            ]
            left[unit] = min(bounds, default=None)
        return left


def covers(budget: Budget, amount: Amount) -> bool:
    """Tell whether an amount fits in a budget."""
    limits = ((unit, _limit(budget, unit)) for unit in _UNITS)
    return all(limit is None or getattr(amount, unit) <= limit for unit, limit in limits)


def _limit(budget: Budget, unit: str) -> Decimal | None:
    value = getattr(budget, unit)
    return None if value is None else Decimal(str(value))
