"""What is left of the sample's limits, for the agent and its model; Inspect enforces them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspect_ai.util import sample_limits
from typing_extensions import override

from mlab_agent.budget import Budget

if TYPE_CHECKING:
    from inspect_ai.agent import AgentState

    from re_bench_inspect.mlab.loop_calls import LoopCalls


def seconds_left() -> float | None:
    """Return what is left of the sample's time, by the limit that is reached first; None without one."""
    limits = sample_limits()
    left = [limit.remaining for limit in (limits.time, limits.working) if limit.remaining is not None]
    return min(left, default=None)


def limit_reached() -> str:
    """Return the agent's word for the limit of time that is over; ``stopped`` where it is none."""
    left = seconds_left()
    return "time" if left is not None and left <= 0 else "stopped"


@dataclass
class SampleBudget(Budget):
    """The limits of a sample. ``max_seconds`` is what was left of its time in the beginning."""

    loop: LoopCalls
    state: AgentState

    @override
    def seconds_left(self) -> float | None:
        async def read() -> float | None:
            return seconds_left()

        return self.loop.call(read)

    @override
    def _spending_limits(self) -> list[tuple[str, float]]:
        return self.loop.call(self._read_spending)

    async def _read_spending(self) -> list[tuple[str, float]]:
        limits = sample_limits()
        used = [
            (limits.token.limit, limits.token.usage, "{:.0f} of {:.0f} tokens"),
            (limits.cost.limit, limits.cost.usage, "${:.2f} of ${:.2f}"),
            (limits.message.limit, len(self.state.messages), "{:.0f} of {:.0f} messages"),
            (limits.turn.limit, limits.turn.usage, "{:.0f} of {:.0f} calls to models"),
        ]
        shown = []
        for whole, usage, text in used:
            if whole is not None:
                left = max(whole - usage, 0.0)
                shown.append((text.format(left, whole), left / whole if whole else 0.0))
        return shown
