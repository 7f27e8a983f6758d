"""The state of a run, which follows from its trace alone: every event changes it through :meth:`RunState.apply`.

A run that is resumed applies the events of its trace, and is then in the state of the killed process. ``resume
--from-step`` sets aside the events after a step; :func:`histories` says which count.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlab_agent.memory import Memory, RejectedReply, Step
from mlab_agent.models import Caps, Reply, Spending
from mlab_agent.truncate import truncate_middle

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from mlab_agent.memory import MemoryLimits

STEP = "step"
"""The purpose of calls whose replies are steps; all other calls serve actions and the memory."""
REWIND = "rewind"
"""The kind of the event with which a run goes back to a step."""
_REJECTED_CHARS = 6_000
USAGE_FILE = "usage.json"
"""Its name in the directory of a run."""
_USAGE_KINDS = frozenset({"start", "resume", "rewind", "call", "call failed", "reply", "observation", "end"})

Event = dict[str, Any]


@dataclass(frozen=True)
class PendingAction:
    """An action that was begun and has no observation yet."""

    fields: dict[str, str]
    action: str
    input: dict[str, Any]
    notes: tuple[str, ...]
    tool: str | None
    attempt: int

    def event(self) -> Event:
        """Return the fields of the trace's event that begins the action."""
        event = {**vars(self), "notes": list(self.notes)}
        del event["attempt"]
        return event


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    reason: str
    """``final answer``, a limit (``steps``, ``time``, ``cost``, ``tokens``), ``malformed``, ``model``,
    ``workspace`` (it was lost), ``stopped`` or ``failure``."""
    answer: str
    detail: str = ""


@dataclass
class RunState:
    """The state after some events."""

    memory: Memory
    spending: Spending
    task: str = ""
    steps: int = 0
    elapsed: float = 0.0
    rejected_in_row: int = 0
    snapshot: str | None = None
    pending: PendingAction | None = None
    unread: Reply | None = None
    """A reply to a step that was not acted on yet."""
    unused: dict[tuple[str, str], list[Reply]] = field(default_factory=lambda: defaultdict(list))
    """In a resumed run: replies that the killed process received for its unfinished action, by purpose and prompt."""
    dialects: dict[str, Event] = field(default_factory=dict)
    handed_in: str | None = None
    """The final answer, once it was handed in."""
    writes: list[tuple[str, str | None]] = field(default_factory=list)
    """The writes of files by actions that were not undone: the file, and the stored content that was there before."""
    rewind: Event | None = None
    """How the run went back to a step, until the workspace was restored."""
    rewinds: int = 0
    same_in_row: int = 0
    """How often the last action was carried out in a row, with the same arguments."""
    end: Event | None = None
    resuming: bool = False
    call_under_way: Event | None = None
    """The event of a call whose reply has not come yet."""
    _last_action: tuple[str, dict[str, Any]] | None = None
    _writes_before: list[tuple[str, str | None]] = field(default_factory=list)
    """Those before the pending action, which is carried out again if it was interrupted."""

    @classmethod
    def empty(cls, limits: MemoryLimits, caps: Caps) -> RunState:
        """Return the state before the first event."""
        return cls(Memory(limits), Spending(caps))

    @classmethod
    def resumed(cls, limits: MemoryLimits, caps: Caps, events: Iterable[Event]) -> RunState:
        """Return the state after the events of a trace; a call that a kill interrupted counts in full."""
        state = cls.empty(limits, caps)
        state.resuming = True
        for event in events:
            state.apply(event)
        state.count_interrupted_call()
        state.resuming = False
        return state

    def apply(self, event: Event) -> None:
        """Change the state by an event; kinds that it does not know change nothing."""
        self.elapsed = max(self.elapsed, event["elapsed"])
        change = getattr(self, f"_on_{event['kind'].replace(' ', '_')}", None)
        if change is not None:
            change(event)

    def count_interrupted_call(self) -> None:
        """Count a call whose reply is not in the trace: it may have been paid for."""
        if self.call_under_way is not None:
            self.spending.add(self.call_under_way["prompt_tokens"], 0, self.call_under_way["dollars"])
            self.call_under_way = None

    @property
    def next_step(self) -> str:
        """A text for the next step that no other step of the run has, also none that a rewind set aside."""
        return f"{self.rewinds}:{self.steps + 1}"

    def repetition(self, action: PendingAction) -> int:
        """Return how often an action will have been carried out in a row, with the same arguments."""
        return self.same_in_row + 1 if self._last_action == (action.action, action.input) else 1

    def writes_of(self, path: str) -> list[str | None]:
        """Return the stored contents that the writes of a file replaced, None for no file; undone writes excluded."""
        return [before for name, before in self.writes if name == path]

    def outcome(self) -> Outcome:
        """Return how the run ended.

        Raises:
            ValueError: if it has not ended yet.
        """
        if self.end is None:
            raise ValueError("the run has not ended")
        return Outcome(self.end["reason"], self.end["answer"], self.end["detail"])

    def _on_start(self, event: Event) -> None:
        self.task = event["task"]

    def _on_resume(self, _event: Event) -> None:
        self.end = None
        self.rejected_in_row = 0
        self.count_interrupted_call()

    def _on_rewind(self, event: Event) -> None:
        self.rewind = event
        self.rewinds = event["number"]
        self.end = None
        self.spending.restore(event["spent"])

    def _on_restored(self, _event: Event) -> None:
        self.rewind = None

    def _on_message(self, event: Event) -> None:
        self.task += f"\n\nA later message, after step {self.steps}:\n{event['text']}"

    def _on_snapshot(self, event: Event) -> None:
        self.snapshot = event["name"]

    def _on_call(self, event: Event) -> None:
        self.call_under_way = event

    def _on_call_failed(self, _event: Event) -> None:
        self.call_under_way = None

    def _on_dialect(self, event: Event) -> None:
        self.dialects[event["model"]] = event

    def _on_reply(self, event: Event) -> None:
        reply = Reply.from_record(event)
        self.spending.add(reply.prompt_tokens, reply.completion_tokens, reply.dollars)
        call, self.call_under_way = self.call_under_way, None
        if event["purpose"] == STEP:
            self.unread = reply
        elif self.resuming and call is not None:
            self.unused[event["purpose"], call.get("prompt", "")].append(reply)

    def _on_malformed(self, event: Event) -> None:
        self.unread = None
        self.rejected_in_row += 1
        self.memory.rejected.append(RejectedReply(truncate_middle(event["reply"], _REJECTED_CHARS), event["text"]))

    def _on_action(self, event: Event) -> None:
        self.unread = None
        if self.pending is None:
            self._writes_before = list(self.writes)
        self.writes = list(self._writes_before)
        attempt = self.pending.attempt if self.pending else 0
        self.pending = PendingAction(
            fields=event["fields"],
            action=event["action"],
            input=event["input"],
            notes=tuple(event["notes"]),
            tool=event["tool"],
            attempt=attempt + 1,
        )

    def _on_write(self, event: Event) -> None:
        self.writes.append((event["path"], event["before"]))

    def _on_undone(self, event: Event) -> None:
        number = max(number for number, (path, _before) in enumerate(self.writes) if path == event["path"])
        del self.writes[number]

    def _on_observation(self, event: Event) -> None:
        action, self.pending = self.pending, None
        assert action is not None
        self.steps += 1
        self.same_in_row = self.repetition(action)
        self._last_action = (action.action, action.input)
        self.rejected_in_row = 0
        self.unused.clear()
        self.snapshot = event["snapshot"] or self.snapshot
        self.handed_in = event["handed_in"]
        self.memory.add(Step(self.steps, action.fields, action.action, action.input, event["text"], action.tool))

    def _on_folded(self, event: Event) -> None:
        self.memory.fold(event)

    def _on_condensed(self, event: Event) -> None:
        self.memory.condense(event["count"], event["text"])

    def _on_end(self, event: Event) -> None:
        self.end = event
        self.unread = None


def histories(events: Iterable[Event]) -> list[list[Event]]:
    """Return the history before each rewind, the oldest first, and the present one last."""
    result: list[list[Event]] = [[]]
    for event in events:
        if event["kind"] == REWIND:
            result.append(until_step(result[-1], event["step"]))
        result[-1].append(event)
    return result


def until_step(history: Sequence[Event], step: int) -> list[Event]:
    """Return a history as it was right after a step; 0 is before the first one.

    Raises:
        ValueError: if it has no such step; the message says how many there are.
    """
    last = "observation" if step else "snapshot"
    ends = [index for index, event in enumerate(history) if event["kind"] == last]
    steps = count_steps(history)
    if not 0 <= step <= steps or not ends:
        raise ValueError(f"there is no step {step}: the run has {steps}")
    return list(history[: ends[max(step - 1, 0)] + 1])


def count_steps(history: Iterable[Event]) -> int:
    """Return how many steps a history has."""
    return sum(event["kind"] == "observation" for event in history)


def write_usage(directory: Path, kind: str, state: RunState) -> None:
    """Replace the file, if an event of this kind can change it; a process that is killed leaves a whole one.

    ``dollars`` (null while the price of a call is not known) and ``tokens`` count a call that is under way in full;
    ``reason`` is why the run ended, null until it has.

    Raises:
        OSError: if it cannot be written.
    """
    if kind not in _USAGE_KINDS:
        return
    spending, call = state.spending, state.call_under_way
    tokens, dollars, unpriced = spending.tokens, spending.dollars, bool(spending.unpriced_calls)
    if call is not None:
        tokens += call["prompt_tokens"]
        dollars += call["dollars"] or 0.0
        unpriced = unpriced or call["dollars"] is None
    usage = {
        "dollars": None if unpriced else dollars,
        "tokens": tokens,
        "steps": state.steps,
        "reason": state.end["reason"] if state.end else None,
    }
    unfinished = directory / f".{USAGE_FILE}.new"
    unfinished.write_text(json.dumps(usage) + "\n", encoding="utf-8")
    unfinished.replace(directory / USAGE_FILE)
