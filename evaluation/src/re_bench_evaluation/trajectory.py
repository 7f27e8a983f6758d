"""What happened in a run, as one list of steps: from an agent's trace, or from the transcript of a server.

Reports, trajectories in ATIF and the scan read it. Both files are JSON lines (docs/transcripts.md); kinds and fields
that are not known are skipped, and any value may have any type.

In a trace, each reply of the model is a step of the agent, whose action and observation belong to it. Replies that
served something else, such as an edit, are steps with ``extra["purpose"]``; steps that a rewind has set aside stay in
their place, marked with ``extra["set_aside"]``. A server sees calls of its tools and no messages of a model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from re_bench.attempts.elapsed import seconds_since_1970
from re_bench.data.jsonl import read_objects
from re_bench.normalise import finite
from re_bench.records import TRACE
from re_bench.tables import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

UNKNOWN = "unknown"
SCORING = frozenset({"Score", "Final Answer", "answer"})
"""Actions and tools that are attempts themselves."""
_STEP = "step"
"""The purpose of a call whose reply is a step."""
_ANSWER = "answer"
_OF_A_CALL = ("exit_status", "timed_out", "waited_s", "queued_s")
_NOTES = {
    "suspended": "The server ended and left the session to the next one.",
    "resumed": "The session went on at another server.",
    "limit": "The file's space is nearly used; from here the transcript is shortened, or ends.",
}

Entry = dict[str, Any]


@dataclass(slots=True)
class Spent:
    """What a call of a model has taken, as logged; what is no number stays what it is."""

    prompt_tokens: object
    completion_tokens: object
    dollars: object


@dataclass(slots=True)
class Step:
    """A message to the agent, something that the agent did, or an event of its surroundings."""

    source: Literal["user", "agent", "system"]
    time: float | None
    """Seconds since 1970; so is ``ended``."""
    text: str = ""
    event: str = ""
    """Of the system: ``attempt``, ``end``, ``resume`` and the like."""
    model: str | None = None
    spent: Spent | None = None
    """Of a reply of a model."""
    tool: str = ""
    """The action or tool that the agent used, if any."""
    arguments: dict[str, Any] = field(default_factory=dict)
    output: str | None = None
    """What the agent was told of it."""
    ended: float | None = None
    """When it was told."""
    result: dict[str, Any] = field(default_factory=dict)
    """More about the call, such as its exit status."""
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Trajectory:
    """The steps of a run, and what its file says of the whole."""

    kind: Literal["trace", "transcript"]
    steps: list[Step] = field(default_factory=list)
    agent: str | None = None
    """The program that wrote a trace, if the trace says so."""
    model: str | None = None
    about: dict[str, Any] = field(default_factory=dict)
    """Task, profile, model and versions of a session."""


def read_trajectory(path: Path) -> tuple[Trajectory, int]:
    """Return what a trace or transcript says, and how many of its lines are not whole.

    Raises:
        LogError: if it is no plain file.
    """
    entries, torn = read_objects(path)
    return (of_trace(entries) if path.name == TRACE else of_transcript(entries)), torn


def arguments_text(arguments: Mapping[str, object]) -> str:
    """Return the only argument of a call, or all of them with their names; those of None are left out."""
    known = {name: value for name, value in arguments.items() if value is not None}
    if len(known) == 1:
        return str(next(iter(known.values())))
    return "\n".join(f"{name}: {value}" for name, value in known.items())


def of_trace(events: Iterable[Entry]) -> Trajectory:
    """Return the trajectory of the events of a trace, in order."""
    reader = _TraceReader()
    for event in events:
        reader.read(event)
    return reader.trajectory


def of_transcript(entries: Iterable[Entry]) -> Trajectory:
    """Return the trajectory of the entries of a server's transcript, in order."""
    trajectory = Trajectory("transcript")
    for entry in entries:
        kind, time = entry.get("kind"), seconds_since_1970(entry.get("time"))
        if kind == "begin":
            trajectory.about = {key: entry[key] for key in ("task", "profile", "model", "versions") if entry.get(key)}
            trajectory.steps.append(Step("user", time, str(entry.get("prompt") or "")))
        elif kind == "call":
            _add_call(trajectory.steps, entry, time)
        elif kind == "end":
            reason = entry.get("reason")
            trajectory.steps.append(
                Step("system", time, f"The session ended: {reason}.", "end", extra={"reason": reason})
            )
        elif isinstance(kind, str) and kind in _NOTES:
            trajectory.steps.append(Step("system", time, _NOTES[kind], kind))
    return trajectory


def _add_call(steps: list[Step], entry: Entry, time: float | None) -> None:
    """Append a call; after one that asked for a score comes the attempt, and the end if it asked for that."""
    metadata, tool = _mapping(entry.get("metadata")), str(entry.get("tool") or UNKNOWN)
    result = {key: metadata[key] for key in _OF_A_CALL if metadata.get(key) is not None}
    result |= {key: entry[key] for key in ("seconds", "cut") if entry.get(key) is not None}
    output = str(entry.get("output") or "")
    arguments = dict(_mapping(entry.get("arguments")))
    steps.append(Step("agent", time, tool=tool, arguments=arguments, output=output, ended=time, result=result))
    if tool != _ANSWER:
        return
    if isinstance(metadata.get("attempt"), int):
        steps.append(Step("system", time, event="attempt", extra={"attempt": metadata["attempt"]}))
    if entry.get("finished") is True:
        final = dict(_mapping(metadata.get("final")))
        text = (
            f"The agent ended the episode; final score: raw {_score(final, 'raw')}, reward {_score(final, 'reward')}."
        )
        steps.append(Step("system", time, text, "end", extra={"final": final}))


class _TraceReader:
    """Appends to a trajectory what each event of a trace says."""

    def __init__(self) -> None:
        self.trajectory = Trajectory("trace")
        self._reply: Step | None = None
        """The step of the reply that is not acted on yet."""
        self._acting: Step | None = None
        """The step whose action has no observation yet."""
        self._done: list[Step] = []
        """The steps that have their observations, as a rewind counts them."""
        self._rewards = 0
        self._time: float | None = None

    def read(self, event: Entry) -> None:
        """Append what an event says."""
        time = _number(event.get("time"))
        self._time = self._time if time is None else time
        match event.get("kind"):
            case "start":
                model = _mapping(_mapping(event.get("settings")).get("model")).get("name")
                self.trajectory.model = model if isinstance(model, str) else self.trajectory.model
                self.trajectory.agent = _text(event, "agent") or self.trajectory.agent
                self._add(Step("user", self._time, _text(event, "task")))
            case "message":
                self._add(Step("user", self._time, _text(event, "text")))
            case "reply":
                self._model_replied(event)
            case "action":
                self._acting, self._reply = self._reply or self._add(Step("agent", self._time)), None
                if self._acting.spent is None:  # done again after a kill
                    self._acting.extra["repeated"] = True
                self._acting.tool = _text(event, "action") or UNKNOWN
                self._acting.arguments = dict(_mapping(event.get("input")))
            case "observation" if self._acting is not None:
                self._acting.output, self._acting.ended = _text(event, "text"), self._time
                self._done.append(self._acting)
                self._acting = None
            case "malformed" if self._reply is not None:
                self._reply.output, self._reply.extra = _text(event, "text"), {"malformed": True}
                self._reply = None
            case "rewind":
                self._rewind(event)
            case kind:
                self._note(kind, event)

    def _add(self, step: Step) -> Step:
        self.trajectory.steps.append(step)
        return step

    def _model_replied(self, event: Entry) -> None:
        model, purpose = event.get("model"), _text(event, "purpose")
        spent = Spent(event.get("prompt_tokens"), event.get("completion_tokens"), event.get("dollars"))
        step = self._add(Step("agent", self._time, _text(event, "text"), spent=spent))
        step.model = model if isinstance(model, str) else None
        if purpose == _STEP:
            self._reply = step
        else:
            step.extra["purpose"] = purpose

    def _rewind(self, event: Entry) -> None:
        kept = event.get("step")
        if isinstance(kept, int) and 0 <= kept <= len(self._done):
            for step in self._done[kept:]:
                step.extra["set_aside"] = event.get("number")
            del self._done[kept:]
            self._reply = self._acting = None
        text = f"The run went back to how things were after step {kept} of the agent."
        self._add(Step("system", self._time, text, "rewind", extra={"step": kept}))

    def _note(self, kind: object, event: Entry) -> None:
        """Append an event of the surroundings; nothing for one that is not known."""
        extra: dict[str, Any] = {}
        match kind:
            case "resume":
                text = "The run was resumed."
            case "server":
                text = _text(event, "text")
            case "call failed":
                text = f"A call failed: {_text(event, 'error')}"
            case "mistake":
                text = f"A mistake of the agent's program: {_text(event, 'where')}"
            case "reward":
                self._rewards += 1
                reward = _score(event, "reward")
                text = f"Attempt {self._rewards} was scored: reward {reward}. It is an attempt, not the end."
                kind, extra = "attempt", {"attempt": self._rewards, "reward": event.get("reward")}
            case "end":
                reason, answer, detail = (_text(event, key) for key in ("reason", "answer", "detail"))
                text = "\n".join(line for line in (f"The run ended: {reason}.", detail, f"Answer: {answer}") if line)
                final = _mapping(_mapping(event.get("final")).get("final"))
                extra = {"reason": reason, "final": dict(final) or None}
            case _:
                return
        self._add(Step("system", self._time, text, str(kind), extra=extra))


def _text(event: Entry, key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    """Return an object of JSON as it is, and nothing for anything else."""
    return value if isinstance(value, dict) else {}


def _score(values: Mapping[str, Any], key: str) -> str:
    """Return a score of a log as a person reads it, a dash for anything else."""
    return number(_number(values.get(key)))


def _number(value: object) -> float | None:
    """Return a number of JSON; None for anything else, and for what no float holds."""
    try:
        return finite(value, "a number")
    except (TypeError, ValueError):
        return None
