"""The transcript of a server's session, ``transcript.jsonl`` (docs/transcripts.md), as a trajectory.

The server sees calls of its tools and no messages of a model: each call is a step of the agent with an empty message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from re_bench_evaluation.transcripts.atif import (
    UNKNOWN,
    Trajectory,
    attempt_fields,
    attempt_line,
    figure,
    instant,
    mapping,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from re_bench.runs.attempts import Attempt

_ANSWER = "answer"
_OF_A_CALL = ("exit_status", "timed_out", "waited_s", "queued_s")
_NOTES = {
    "suspended": "The server ended and left the session to the next one.",
    "resumed": "The session went on at another server.",
    "limit": "The file's space is nearly used; from here the transcript is shortened, or ends.",
}


def trajectory_of_transcript(
    entries: Iterable[dict[str, Any]],
    session: str,
    agent: Mapping[str, Any],
    extra: Mapping[str, Any],
    attempts: Sequence[Attempt],
) -> Trajectory:
    """Return the trajectory of a transcript's entries.

    Args:
        entries: in order; kinds and fields that are not known are skipped.
        session: the session's name.
        agent: ``name``, ``version`` and ``model_name`` of the agent, as far as they are known.
        extra: what the document says besides.
        attempts: those of the session's log, which has the scores that a task hides from its agent.
    """
    trajectory = Trajectory(session, {"name": UNKNOWN, "version": UNKNOWN, **agent}, dict(extra))
    by_number = {attempt.n: attempt for attempt in attempts}
    for entry in entries:
        kind, time = entry.get("kind"), instant(entry.get("time"))
        if kind == "begin":
            trajectory.extra |= {key: entry[key] for key in ("task", "profile", "model", "versions") if entry.get(key)}
            trajectory.add("user", str(entry.get("prompt") or ""), time)
        elif kind == "call":
            _add_call(trajectory, entry, by_number)
        elif kind == "end":
            reason = entry.get("reason")
            trajectory.add_event("end", f"The session ended: {reason}.", time, reason=reason)
        elif isinstance(kind, str) and kind in _NOTES:
            trajectory.add_event(kind, _NOTES[kind], time)
    for attempt in by_number.values():  # of calls that are not in the transcript
        trajectory.add_attempt(attempt)
    return trajectory


def _add_call(trajectory: Trajectory, entry: dict[str, Any], attempts: dict[int, Attempt]) -> None:
    """Append a call; an attempt comes after the call that asked for it, and leaves ``attempts``."""
    metadata, time = mapping(entry.get("metadata")), instant(entry.get("time"))
    name = f"call-{len(trajectory.steps) + 1}"
    tool = str(entry.get("tool") or UNKNOWN)
    call = {"tool_call_id": name, "function_name": tool, "arguments": dict(mapping(entry.get("arguments")))}
    result: dict[str, Any] = {"source_call_id": name, "content": str(entry.get("output") or "")}
    about = {key: metadata[key] for key in _OF_A_CALL if metadata.get(key) is not None}
    about |= {key: entry[key] for key in ("seconds", "cut") if entry.get(key) is not None}
    if about:
        result["extra"] = about
    trajectory.add("agent", "", time, tool_calls=[call], observation={"results": [result]})
    if tool != _ANSWER:
        return
    number = metadata.get("attempt")
    attempt = attempts.pop(number, None) if isinstance(number, int) else None
    if attempt is not None:
        trajectory.add_event("attempt", attempt_line(attempt), time, **attempt_fields(attempt))
    if entry.get("finished") is True:
        final = dict(mapping(metadata.get("final")))
        raw, reward = (figure(final.get(name)) for name in ("raw", "reward"))
        message = f"The agent ended the episode; final score: raw {raw}, reward {reward}."
        trajectory.add_event("end", message, time, final=final)
