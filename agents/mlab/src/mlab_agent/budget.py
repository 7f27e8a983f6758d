"""The limits of a run, and how much of them is left: steps, time, money, tokens."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlab_agent.models import Spending

_RESERVE_SHARE, _MAX_RESERVE_S = 0.05, 120.0
_WARNING_SHARE = 0.1
_MINUTE, _HOUR = 60, 3600


class Clock:
    """The seconds that a run has worked, including those before it was resumed."""

    def __init__(self, before: float = 0.0) -> None:
        self._start = time.monotonic() - before

    def __call__(self) -> float:
        """Return the seconds."""
        return time.monotonic() - self._start


@dataclass
class Budget:
    """The limits of a run, and what is left of them. The last part of the time is reserved for the final answer."""

    max_steps: int | None
    max_seconds: float | None
    spending: Spending
    clock: Clock

    def seconds_left(self) -> float | None:
        """Return the seconds left in all; None without a limit."""
        return None if self.max_seconds is None else self.max_seconds - self.clock()

    def working_seconds_left(self) -> float | None:
        """Return the seconds left for work, without the reserve for the final answer; None without a limit."""
        if self.max_seconds is None:
            return None
        return self._working_seconds(self.max_seconds) - self.clock()

    @staticmethod
    def _working_seconds(seconds: float) -> float:
        return seconds - min(_MAX_RESERVE_S, _RESERVE_SHARE * seconds)

    def reached(self, steps: int) -> str | None:
        """Return the limit that is reached after so many steps, ``steps`` or ``time``; None if none is."""
        if self.max_steps is not None and steps >= self.max_steps:
            return "steps"
        left = self.working_seconds_left()
        return "time" if left is not None and left <= 0 else None

    def line(self, steps: int) -> str:
        """Return the line about the budget that the model sees after so many steps."""
        caps, spending = self.spending.caps, self.spending
        parts, shares = [], []
        if self.max_steps is not None:
            parts.append(f"{self.max_steps - steps} of {self.max_steps} steps")
            shares.append(1 - steps / self.max_steps)
        left = self.working_seconds_left()
        if self.max_seconds is not None and left is not None:
            working = self._working_seconds(self.max_seconds)
            parts.append(f"{duration(max(left, 0.0))} of {duration(working)}")
            shares.append(left / working)
        if caps.dollars is not None:
            unpriced = f" (without {spending.unpriced_calls} calls of unknown cost)" if spending.unpriced_calls else ""
            parts.append(f"${max(caps.dollars - spending.dollars, 0):.2f} of ${caps.dollars:.2f}{unpriced}")
            shares.append(1 - spending.dollars / caps.dollars if caps.dollars else 0.0)
        if caps.tokens is not None:
            parts.append(f"{max(caps.tokens - spending.tokens, 0)} of {caps.tokens} tokens")
            shares.append(1 - spending.tokens / caps.tokens if caps.tokens else 0.0)
        if not parts:
            return "[Budget left: no limit]"
        line = f"[Budget left: {', '.join(parts)}]"
        if self.reached(steps):
            return f"{line}\n[The budget is used up. Only Final Answer is carried out now.]"
        if min(shares) < _WARNING_SHARE:
            return f"{line}\n[Little is left. Put the best result so far in place, then give the Final Answer.]"
        return line


def duration(seconds: float) -> str:
    """Return a duration in words, such as ``1 h 05 min``."""
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    minutes = int(seconds // _MINUTE)
    if seconds < _HOUR:
        return f"{minutes} min {int(seconds % _MINUTE):02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
