"""The state of a run, which is nothing but what its trace says: every event changes it through :meth:`RunState.apply`.

A run that is resumed applies the events of its trace and stands where the killed one stood.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlab_agent.cutting import cut_middle
from mlab_agent.memory import Memory
from mlab_agent.models import Caps, Reply, Spending
from mlab_agent.research_log import Entry
from mlab_agent.steps import Malformed, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mlab_agent.memory import MemoryLimits

__all__ = ["STEP", "InFlight", "RunState"]

STEP = "step"
"""The purpose of the calls whose replies are steps; all others serve actions and the memory."""
_SHOWN_BACK = 6_000

Event = dict[str, Any]


@dataclass(frozen=True)
class InFlight:
    """An action whose observation is not there yet."""

    fields: dict[str, str]
    action: str
    input: dict[str, Any]
    notes: tuple[str, ...]
    tool: str | None
    journal: int
    attempt: int


@dataclass
class RunState:
    """Where a run stands."""

    memory: Memory
    spending: Spending
    task: str = ""
    steps: int = 0
    elapsed: float = 0.0
    malformed_in_row: int = 0
    snapshot: str | None = None
    in_flight: InFlight | None = None
    waiting: Reply | None = None
    """A reply that nothing was made of yet."""
    unused: dict[tuple[str, str], list[Reply]] = field(default_factory=lambda: defaultdict(list))
    """In a resumed run: replies that the killed one had for what it did not finish, by purpose and prompt."""
    dialects: dict[str, Event] = field(default_factory=dict)
    handed_in: str | None = None
    """The final answer, once the home has taken it."""
    end: Event | None = None
    resuming: bool = False
    _call: Event | None = None

    @classmethod
    def empty(cls, limits: MemoryLimits, caps: Caps) -> RunState:
        """Return the state before the first event."""
        return cls(Memory(limits), Spending(caps))

    @classmethod
    def resumed(cls, limits: MemoryLimits, caps: Caps, events: Iterable[Event]) -> RunState:
        """Return the state after the events of a trace; a call that a kill cut off counts in full."""
        state = cls.empty(limits, caps)
        state.resuming = True
        for event in events:
            state.apply(event)
        state.count_cut_off_call()
        state.resuming = False
        return state

    def apply(self, event: Event) -> None:
        """Change the state as an event says."""
        self.elapsed = max(self.elapsed, event["elapsed"])
        change = _CHANGES.get(event["kind"])
        if change is not None:
            change(self, event)

    def _start(self, event: Event) -> None:
        self.task = event["task"]

    def _resume(self, _event: Event) -> None:
        self.end = None
        self.malformed_in_row = 0
        self.count_cut_off_call()

    def count_cut_off_call(self) -> None:
        """Count a call whose reply is not in the trace: it may have been paid for."""
        if self._call is not None:
            self.spending.add(self._call["prompt_tokens"], 0, self._call["dollars"])
            self._call = None

    def _message(self, event: Event) -> None:
        self.task += f"\n\nA later message, after step {self.steps}:\n{event['text']}"

    def _snapshot(self, event: Event) -> None:
        self.snapshot = event["name"]

    def _called(self, event: Event) -> None:
        self._call = event

    def _call_failed(self, _event: Event) -> None:
        self._call = None

    def _dialect(self, event: Event) -> None:
        self.dialects[event["model"]] = event

    def _reply(self, event: Event) -> None:
        reply = Reply.from_record(event)
        self.spending.add(reply.prompt_tokens, reply.completion_tokens, reply.dollars)
        call, self._call = self._call, None
        if event["purpose"] == STEP:
            self.waiting = reply
        elif self.resuming and call is not None:
            self.unused[event["purpose"], call.get("prompt", "")].append(reply)

    def _malformed(self, event: Event) -> None:
        self.waiting = None
        self.malformed_in_row += 1
        self.memory.malformed.append(Malformed(cut_middle(event["reply"], _SHOWN_BACK), event["text"]))

    def _action(self, event: Event) -> None:
        self.waiting = None
        again = self.in_flight.attempt if self.in_flight else 0
        self.in_flight = InFlight(
            fields=event["fields"],
            action=event["action"],
            input=event["input"],
            notes=tuple(event["notes"]),
            tool=event["tool"],
            journal=event["journal"],
            attempt=again + 1,
        )

    def _observation(self, event: Event) -> None:
        done, self.in_flight = self.in_flight, None
        assert done is not None
        self.steps += 1
        self.malformed_in_row = 0
        self.unused.clear()
        self.snapshot = event["snapshot"] or self.snapshot
        self.handed_in = event["handed_in"]
        self.memory.add(Step(self.steps, done.fields, done.action, done.input, event["text"], done.tool))

    def _folded(self, event: Event) -> None:
        self.memory.fold([Entry(**entry) for entry in event["entries"]])

    def _condensed(self, event: Event) -> None:
        self.memory.log.condense(event["count"], event["text"])

    def _ended(self, event: Event) -> None:
        self.end = event
        self.waiting = None


_CHANGES: dict[str, Callable[[RunState, Event], None]] = {
    "start": RunState._start,  # noqa: SLF001 - the table of this class
    "resume": RunState._resume,  # noqa: SLF001
    "message": RunState._message,  # noqa: SLF001
    "snapshot": RunState._snapshot,  # noqa: SLF001
    "call": RunState._called,  # noqa: SLF001
    "call failed": RunState._call_failed,  # noqa: SLF001
    "dialect": RunState._dialect,  # noqa: SLF001
    "reply": RunState._reply,  # noqa: SLF001
    "malformed": RunState._malformed,  # noqa: SLF001
    "action": RunState._action,  # noqa: SLF001
    "observation": RunState._observation,  # noqa: SLF001
    "folded": RunState._folded,  # noqa: SLF001
    "condensed": RunState._condensed,  # noqa: SLF001
    "end": RunState._ended,  # noqa: SLF001
}
