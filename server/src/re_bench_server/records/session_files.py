"""The files of a session in a state directory, read without its server: what it was, and what it has done."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from re_bench.errors import UsageError
from re_bench.runs.attempts import Attempt, AttemptLog
from re_bench_server.records.transcripts import FILE, last_entries, read_transcript
from re_bench_server.session_record import FILE as RECORD

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

ENDED_BY_OPERATOR = "ended by the operator"
"""The reason of an end by ``re-bench sessions end``."""
ATTEMPTS = "attempts.jsonl"
_SHOWN_NAMES = 5
_NO_CALLS = 8
"""More entries than there are ever together that are no calls."""


@dataclass(frozen=True)
class Summary:
    """A session in a line; what is not known is None."""

    name: str
    task: str | None
    profile: str | None
    state: str
    """``opening``, ``open``, ``finished`` (after its final answer) or ``ended``; ``suspended`` without a server."""
    opened: str | None
    ended: str | None
    reason: str | None
    """Why it ended."""
    hours_used: float | None
    """Of the session's hours: of working time."""
    hours_waited: float | None
    """What the server made it wait for its turn, beyond that."""
    model_dollars: float | None
    scoring_model_dollars: float | None
    attempts: int
    scored: int
    """How many of them are used up: all but those that failed by a fault of ours."""
    max_attempts: int | None
    """How many of them the session may use up."""
    best_reward: float | None
    """The highest reward of its attempts."""
    last_activity: str | None
    """When something was last written, ISO 8601 in UTC."""


class SessionFiles:
    """One session's directory. Reading never fails because the server writes or removes files meanwhile."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def name(self) -> str:
        """The session's name."""
        return self.directory.name

    def record(self) -> dict[str, Any]:
        """Return what ``session.json`` says; nothing if it cannot be read."""
        try:
            record = json.loads((self.directory / RECORD).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return record if isinstance(record, dict) else {}

    def ended(self) -> dt.datetime | None:
        """Return when the session ended; None if it has not, or nothing says so."""
        try:
            return dt.datetime.fromisoformat(self.record()["ended"])
        except (KeyError, TypeError, ValueError):
            return None

    def attempts(self) -> tuple[Attempt, ...]:
        """Return the whole attempts of the log."""
        try:
            return AttemptLog(self.directory / ATTEMPTS).read().attempts
        except OSError:
            return ()

    def calls(self, last: int | None = None) -> list[dict[str, Any]]:
        """Return the calls in the transcript, or the last of them."""
        path = self.directory / FILE
        try:
            # Few entries are no calls, so a few more entries than calls are enough.
            entries = read_transcript(path).entries if last is None else last_entries(path, last + _NO_CALLS)
        except OSError:
            return []
        calls = [entry for entry in entries if entry["kind"] == "call"]
        return calls if last is None else calls[-last:] if last else []

    def summary(self, *, served: bool) -> Summary:
        """Return the session in a line.

        Args:
            served: whether a server uses the state directory.
        """
        record, attempts = self.record(), self.attempts()
        latest = self._latest_entry()
        rewards = [attempt.reward for attempt in attempts if attempt.reward is not None]
        return Summary(
            name=self.name,
            task=record.get("task"),
            profile=record.get("profile"),
            state=_state(record, served=served),
            opened=record.get("opened"),
            ended=record.get("ended"),
            reason=record.get("reason"),
            hours_used=_highest(record.get("used_s", 0.0) / 3600, latest.get("hours_used")),
            hours_waited=_highest(record.get("waited_s", 0.0) / 3600, latest.get("hours_waited")),
            model_dollars=_highest(record.get("model_dollars"), latest.get("model_dollars")),
            scoring_model_dollars=_highest(record.get("scoring_model_dollars"), latest.get("scoring_model_dollars")),
            attempts=len(attempts),
            scored=sum(attempt.status != "error" for attempt in attempts),
            max_attempts=record.get("max_attempts"),
            best_reward=max(rewards, default=None),
            last_activity=self._last_activity(),
        )

    def _latest_entry(self) -> dict[str, Any]:
        try:
            entries = last_entries(self.directory / FILE, _NO_CALLS)
        except OSError:
            return {}
        return next((entry for entry in reversed(entries) if "hours_used" in entry), {})

    def _last_activity(self) -> str | None:
        times = []
        for name in (FILE, ATTEMPTS, RECORD):
            try:
                times.append((self.directory / name).stat().st_mtime)
            except OSError:
                continue
        return dt.datetime.fromtimestamp(max(times), dt.UTC).isoformat(timespec="seconds") if times else None


def all_sessions(state: Path) -> list[SessionFiles]:
    """Return the sessions in a state directory, the oldest first.

    Raises:
        UsageError: if it is none.
    """
    try:
        directories = [path for path in (state / "sessions").iterdir() if path.is_dir()]
    except OSError as error:
        raise UsageError(
            f"{state}: no server has kept sessions there ({error.strerror}); give its directory with --state"
        ) from None
    return [SessionFiles(path) for path in sorted(directories)]


def session_called(state: Path, prefix: str) -> SessionFiles:
    """Return the session whose name begins with ``prefix``.

    Raises:
        UsageError: if there is none, or more than one.
    """
    sessions = all_sessions(state)
    matching = [one for one in sessions if one.name.startswith(prefix)]
    exact = [one for one in matching if one.name == prefix]
    if len(exact or matching) != 1:
        problem = "is the beginning of several sessions' names" if matching else "is the name of no session"
        names = _listing(one.name for one in matching or sessions[-_SHOWN_NAMES:])
        raise UsageError(f"{prefix!r} {problem} in {state}; there are: {names}")
    return (exact or matching)[0]


def _highest(*values: float | None) -> float | None:
    """Return the latest of two readings of something that only grows."""
    return max((value for value in values if value is not None), default=None)


def _listing(names: Iterable[str]) -> str:
    all_names = list(names)
    more = f" and {len(all_names) - _SHOWN_NAMES} more" if len(all_names) > _SHOWN_NAMES else ""
    return (", ".join(all_names[:_SHOWN_NAMES]) or "none") + more


def _state(record: dict[str, Any], *, served: bool) -> str:
    if record.get("ended") or not record:
        return "ended"
    if not served:
        return "suspended"
    return str(record.get("state", "open"))
