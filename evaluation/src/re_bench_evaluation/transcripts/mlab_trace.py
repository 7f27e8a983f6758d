"""The trace of an mlab run, ``trace.jsonl``, as a trajectory.

Each reply of the model is a step of the agent. The action in it is its tool call, and what the agent was told its
observation. What other calls of models served, such as an edit, are steps of their own with ``extra.purpose``. Steps
that a rewind has set aside stay where they were, marked with ``extra.set_aside``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from re_bench_evaluation.transcripts.atif import UNKNOWN, Trajectory, figure, instant, mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from re_bench.runs.attempts import Attempt

_STEP = "step"
"""The purpose of a call whose reply is a step."""

Event = dict[str, Any]


def trajectory_of_trace(
    events: Iterable[Event], session: str, extra: Mapping[str, Any], attempts: Sequence[Attempt] | None = None
) -> Trajectory:
    """Return the trajectory of a trace's events.

    Args:
        events: in order; kinds and fields that are not known are skipped.
        session: the identifier of the run.
        extra: what the document says besides.
        attempts: those of the run's log, which come in at their time; None takes the rewards of the trace instead.
    """
    agent: dict[str, Any] = {"name": "mlab-agent", "version": UNKNOWN}
    reader = _Reader(Trajectory(session, agent, dict(extra)), attempts)
    for event in events:
        reader.read(event)
    reader.add_attempts_until(None)
    return reader.trajectory


class _Reader:
    """Appends to a trajectory what each event says."""

    def __init__(self, trajectory: Trajectory, attempts: Sequence[Attempt] | None) -> None:
        self.trajectory = trajectory
        self._attempts = None if attempts is None else list(attempts)
        self._reply: dict[str, Any] | None = None
        """The step of the reply that is not acted on yet."""
        self._acting: dict[str, Any] | None = None
        """The step whose action has no observation yet."""
        self._done: list[dict[str, Any]] = []
        """The steps that have their observations, as mlab counts them."""
        self._rewards = 0
        self._time: str | None = None
        self._readers: dict[str, Callable[[Event], None]] = {
            "start": self._start,
            "message": lambda event: self._say("user", event),
            "reply": self._model_replied,
            "action": self._action,
            "observation": self._observation,
            "malformed": self._malformed,
            "reward": self._reward,
            "rewind": self._rewind,
            "end": self._end,
            "resume": lambda _event: self._note("resume", "The run was taken up again."),
            "server": lambda event: self._note("server", _text(event, "text")),
            "call failed": lambda event: self._note("call failed", f"A call failed: {_text(event, 'error')}"),
            "mistake": lambda event: self._note(
                "mistake", f"A mistake of the agent's program: {_text(event, 'where')}"
            ),
        }

    def read(self, event: Event) -> None:
        """Append what an event says."""
        reader = self._readers.get(_text(event, "kind"))
        if reader is None:
            return
        self._time = instant(event.get("time")) or self._time
        if event["kind"] not in ("observation", "reward"):  # what the agent was told of an attempt comes before it
            self.add_attempts_until(self._time)
        reader(event)

    def add_attempts_until(self, time: str | None) -> None:
        """Append the attempts of the log until a time, or the rest of them."""
        while self._attempts and (time is None or (instant(self._attempts[0].time) or "") <= time):
            self.trajectory.add_attempt(self._attempts.pop(0))

    def _note(self, event: str, message: str, **extra: Any) -> None:
        self.trajectory.add_event(event, message, self._time, **extra)

    def _say(self, source: str, event: Event) -> None:
        self.trajectory.add(source, _text(event, "text"), self._time)

    def _start(self, event: Event) -> None:
        model = mapping(mapping(event.get("settings")).get("model")).get("name")
        if isinstance(model, str):
            self.trajectory.agent["model_name"] = model
        self.trajectory.add("user", _text(event, "task"), self._time)

    def _model_replied(self, event: Event) -> None:
        metrics = self.trajectory.count(*(event.get(key) for key in ("prompt_tokens", "completion_tokens", "dollars")))
        model, purpose = event.get("model"), _text(event, "purpose")
        step = self.trajectory.add(
            "agent",
            _text(event, "text"),
            self._time,
            model_name=model if isinstance(model, str) else None,
            metrics=metrics or None,
            llm_call_count=1,
            extra=None if purpose == _STEP else {"purpose": purpose},
        )
        if purpose == _STEP:
            self._reply = step

    def _action(self, event: Event) -> None:
        step = self._reply
        if step is None:  # begun again after a kill
            step = self.trajectory.add("agent", "", self._time, llm_call_count=0, extra={"repeated": True})
        self._reply, self._acting = None, step
        step["tool_calls"] = [
            {
                "tool_call_id": f"call-{step['step_id']}",
                "function_name": _text(event, "action") or UNKNOWN,
                "arguments": dict(mapping(event.get("input"))),
            }
        ]

    def _observation(self, event: Event) -> None:
        step, self._acting = self._acting, None
        if step is not None:
            result = {"source_call_id": step["tool_calls"][0]["tool_call_id"], "content": _text(event, "text")}
            step["observation"] = {"results": [result]}
            self._done.append(step)

    def _malformed(self, event: Event) -> None:
        step, self._reply = self._reply, None
        if step is not None:
            step["observation"] = {"results": [{"content": _text(event, "text")}]}
            step["extra"] = {"malformed": True}

    def _reward(self, event: Event) -> None:
        if self._attempts is None:
            self._rewards += 1
            reward = figure(event.get("reward"))
            line = f"Attempt {self._rewards} was scored: reward {reward}. It is an attempt, not the end."
            self._note("attempt", line, attempt=self._rewards, reward=event.get("reward"))

    def _rewind(self, event: Event) -> None:
        kept = event.get("step")
        if isinstance(kept, int) and 0 <= kept <= len(self._done):
            for step in self._done[kept:]:
                step["extra"] = {**step.get("extra", {}), "set_aside": event.get("number")}
            del self._done[kept:]
            self._reply = self._acting = None
        self._note("rewind", f"The run went back to how things were after step {kept} of the agent.", step=kept)

    def _end(self, event: Event) -> None:
        self.add_attempts_until(None)
        reason, answer, detail = (_text(event, key) for key in ("reason", "answer", "detail"))
        lines = [f"The run ended: {reason}.", detail, f"Answer: {answer}"]
        final = mapping(mapping(event.get("final")).get("final"))
        self._note("end", "\n".join(line for line in lines if line), reason=reason, final=dict(final) or None)


def _text(event: Event, key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""
