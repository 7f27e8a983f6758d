"""The append-only log of a run's attempts, one line of JSON each.

A line is `{"attempt":{...},"crc":"8 hex digits","v":1}` in one canonical spelling, so that a line is whole exactly
if encoding what it says gives its bytes again. Lines that a kill has torn stay, and are counted when the log is read.
"""

import dataclasses
import json
import math
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from re_bench.attempts.elapsed import Elapsed
from re_bench.data.jsonl import locked_log, read_lines
from re_bench.normalise import How, aggregate, finite, normalise

Status = Literal["valid", "invalid", "error"]
"""How an attempt ended: scored, refused for a fault of the submission, or failed for an internal reason."""

MAX_LINE = 1 << 20
"""The longest line written, in bytes with its newline."""

_VERSION = 1
_DETAILS_BUDGET = MAX_LINE // 2
_MESSAGE_BUDGET = MAX_LINE // 4
_LATER = ("private_raw", "wall_s", "working_s")
"""Fields that early logs do not have; a line leaves them out where they are None."""
_OLD_NAMES = {"final_raw": "private_raw"}
"""Fields by the names that they have in older logs."""
_TEXTS = ("time", "task", "profile", "message", "submission", "sandbox", "scorer")


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One scored submission.

    Attributes:
        n: its number in the log, from 1; 0 until it has been appended.
        time: when it was scored, ISO 8601 in UTC.
        task: the task's name.
        profile: the profile it was scored at.
        status: "valid", "invalid" or "error".
        raw: the raw score in the task's unit; a number exactly if the status is "valid".
        reward: the normalised score; None also while the profile has no anchors.
        message: what the agent may read.
        details: what only the log keeps; plain JSON values.
        seconds: wall-clock seconds the scoring took.
        submission: SHA-256 of the staged tree in hex, or "".
        sandbox: the name of the sandbox backend.
        scorer: the version of the scorer.
        final_raw: the raw score that counts for the final score; None where it is ``raw``.
        wall_s: seconds from the run's beginning until the submission was handed in, pauses left out; None if unknown.
        working_s: the same without what the run was made to wait for others; None if unknown.
    """

    time: str
    task: str
    profile: str
    status: Status
    raw: float | None
    reward: float | None
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    submission: str = ""
    sandbox: str = ""
    scorer: str = ""
    n: int = 0
    private_raw: float | None = None
    wall_s: float | None = None
    working_s: float | None = None

    @property
    def deciding_raw(self) -> float | None:
        """The raw score that counts for the final score."""
        return self.raw if self.private_raw is None else self.private_raw

    @property
    def submitted_at(self) -> Elapsed | None:
        """The run's time when the submission was handed in; None if it is not known."""
        if self.wall_s is None:
            return None
        return Elapsed(self.wall_s, self.wall_s if self.working_s is None else self.working_s)


@dataclass(frozen=True, slots=True)
class FinalScore:
    """The score of a whole run so far."""

    attempt: int
    """The number of the last attempt; 0 if there is none."""
    raw: float | None
    """None, as the reward, if no attempt was valid."""
    reward: float | None
    attempts: int
    """How many there were."""
    valid: int
    """How many of them were valid."""


@dataclass(frozen=True, slots=True)
class LogContents:
    """What a log holds: its whole attempts in the order of the file, and how many lines were not whole."""

    attempts: tuple[Attempt, ...]
    torn: int

    def final(self, aggregation: How, anchors: tuple[float, float] | None) -> FinalScore:
        """Combine the attempts into the final score.

        Args:
            aggregation: "min", "max" or "last", over raw scores.
            anchors: the starting and the reference score, for attempts that do not say by which they were scored;
                None where each attempt has its own, and then the reward is that of the last attempt with the final raw
                score. An attempt with a ``private_raw`` has none.

        Raises:
            ValueError: if the aggregation is unknown or the anchors are unusable.
        """
        scores = [attempt.deciding_raw for attempt in self.attempts]
        raw = aggregate(scores, aggregation)
        own = next((attempt.reward for attempt in reversed(self.attempts) if attempt.raw == raw), None)
        if raw is not None and anchors is not None:
            counted = next(attempt for attempt in reversed(self.attempts) if attempt.deciding_raw == raw)
            own = normalise(raw, *anchors_of(counted, anchors))
        return FinalScore(_last(self.attempts), raw, own, len(scores), sum(score is not None for score in scores))


def anchors_of(attempt: Attempt, others: tuple[float, float]) -> tuple[float, float]:
    """Return the anchors that an attempt was scored by, which may be those of a task's instance, else ``others``."""
    try:
        own = attempt.details["anchors"]
        return float(own["starting"]), float(own["reference"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return others


class AttemptLog:
    """The attempt log at a path, which need not exist yet; its directory must.

    Any number of processes may append and read at the same time.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def append(self, attempt: Attempt) -> Attempt:
        """Add an attempt, returning only once it is on the disk.

        Args:
            attempt: without a number, which the log gives it.

        Returns:
            The attempt as it was written: numbered; details and message cut if they would not fit a line, text that
            is no Unicode replaced, and values in details that JSON does not know turned into text.

        Raises:
            TypeError: if a field has the wrong type.
            ValueError: if a field is impossible: a number already given, a score that is not finite, or a score
                without the status "valid" or the reverse.
            LogError: if the path is not a plain file or its directory is missing.
            OSError: if the system refuses the write; the attempt is then not acknowledged.
        """
        if attempt.n != 0:
            raise ValueError(f"an attempt gets its number from the log, this one already has {attempt.n}")
        _check(attempt)
        with locked_log(self.path) as log:
            number = _last(_contents(log.lines()).attempts) + 1
            line, written = _line(dataclasses.replace(attempt, n=number))
            log.append(line)
        return written

    def read(self) -> LogContents:
        """Read every whole attempt; a log that does not exist yet is empty.

        Takes no lock, so a line being written at this moment may count as torn. Never raises for what the file holds.

        Raises:
            LogError: if the path is not a plain file.
        """
        return _contents(read_lines(self.path))

    def final(self, aggregation: How, anchors: tuple[float, float] | None) -> FinalScore:
        """Read the log and combine its attempts; see `LogContents.final`."""
        return self.read().final(aggregation, anchors)


def encoded(attempt: Attempt) -> bytes:
    """Return the line, without its newline, in which a log tells of an attempt that has its number."""
    return _line(attempt)[0]


def _check(attempt: Attempt) -> None:
    """Raise TypeError or ValueError unless the attempt is one that may stand in a log."""
    for name in _TEXTS:
        if not isinstance(getattr(attempt, name), str):
            raise TypeError(f"{name} must be text, got {type(getattr(attempt, name)).__name__}")
    if not isinstance(attempt.details, Mapping):
        raise TypeError(f"details must be a mapping, got {type(attempt.details).__name__}")
    if attempt.status not in get_args(Status):
        raise ValueError(f"status must be one of {', '.join(get_args(Status))}, got {attempt.status!r}")
    finite(attempt.seconds, "seconds")
    _check_scores(attempt)
    _check_times(attempt)


def _check_scores(attempt: Attempt) -> None:
    """Raise unless exactly a valid attempt has a raw score, and no other a reward."""
    scores = (attempt.raw, attempt.reward, attempt.private_raw)
    for name, score in zip(("raw", "reward", "private_raw"), scores, strict=True):
        if score is not None:
            finite(score, name)
    if attempt.status == "valid" and attempt.raw is None:
        raise ValueError("a valid attempt needs a raw score, got None")
    if attempt.status != "valid" and any(score is not None for score in scores):
        raise ValueError(
            f"an attempt that is {attempt.status} has no score, got raw {attempt.raw}, reward {attempt.reward}"
        )


def _check_times(attempt: Attempt) -> None:
    """Raise unless working time is part of wall-clock time."""
    for name in ("wall_s", "working_s"):
        value = getattr(attempt, name)
        if value is not None and finite(value, name) < 0:
            raise ValueError(f"{name} must not be negative, got {value}")
    if attempt.working_s is not None and (attempt.wall_s is None or attempt.working_s > attempt.wall_s):
        raise ValueError(f"working_s must be within wall_s, got {attempt.working_s} of {attempt.wall_s}")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":"))


def _encode(fields: object) -> bytes:
    crc = zlib.crc32(_json(fields).encode("ascii"))
    return _json({"v": _VERSION, "crc": f"{crc:08x}", "attempt": fields}).encode("ascii")


def _decode(line: bytes) -> Attempt | None:
    """Return the attempt in a line without its newline, or None if the line is not whole."""
    if len(line) >= MAX_LINE:
        return None
    try:
        fields = json.loads(line)["attempt"]
        if _encode(fields) != line:
            return None
        attempt = Attempt(**{_OLD_NAMES.get(name, name): value for name, value in fields.items()})
        _check(attempt)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return None
    numbered = isinstance(attempt.n, int) and not isinstance(attempt.n, bool) and attempt.n >= 1
    return attempt if numbered else None


def _contents(lines: Iterable[bytes]) -> LogContents:
    decoded = [_decode(line) for line in lines]
    whole = tuple(attempt for attempt in decoded if attempt is not None)
    return LogContents(whole, len(decoded) - len(whole))


def _last(attempts: Iterable[Attempt]) -> int:
    return max((attempt.n for attempt in attempts), default=0)


def _line(attempt: Attempt) -> tuple[bytes, Attempt]:
    """Return the line of an attempt, without its newline, and the attempt as the line tells it."""
    attempt = _cleaned(attempt)
    line = _encode(_fields(attempt))
    if len(line) >= MAX_LINE:
        line = _encode(_fields(_shortened(attempt)))
    written = _decode(line)
    if written is None or len(line) >= MAX_LINE:
        raise ValueError(f"the attempt does not fit a line of {MAX_LINE} bytes even without details")
    return line, written


def _fields(attempt: Attempt) -> dict[str, Any]:
    values = {key.name: getattr(attempt, key.name) for key in dataclasses.fields(attempt)}
    return {name: value for name, value in values.items() if value is not None or name not in _LATER}


def _cleaned(attempt: Attempt) -> Attempt:
    """Give every field the one spelling that reading it back gives."""
    changes: dict[str, Any] = {name: _text(getattr(attempt, name)) for name in _TEXTS}
    for name in ("raw", "reward", "seconds", *_LATER):
        value = getattr(attempt, name)
        changes[name] = None if value is None else float(value)
    try:
        # There and back, so that keys are text before they are sorted.
        changes["details"] = json.loads(json.dumps(_plain(attempt.details), allow_nan=False))
    except (ValueError, TypeError, RecursionError) as error:
        changes["details"] = {"left_out": f"all details: JSON cannot hold them ({type(error).__name__})"}
    return dataclasses.replace(attempt, **changes)


def _text(text: str) -> str:
    """Replace what is no Unicode, which no terminal or report could show."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _plain(value: object) -> object:
    """Turn a value into what JSON knows; a NaN or an unknown object becomes text rather than losing the attempt."""
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        return {_text(str(key)): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return _text(repr(value))


def _shortened(attempt: Attempt) -> Attempt:
    """Cut an attempt to fit a line: the smallest details stay, and the beginning of the message."""
    sizes = {key: len(_json({key: value})) for key, value in attempt.details.items()}
    kept: dict[str, Any] = {}
    room = _DETAILS_BUDGET
    for key in sorted(sizes, key=sizes.__getitem__):
        room -= sizes[key]
        if room < 0:
            break
        kept[key] = attempt.details[key]
    left_out = len(sizes) - len(kept)
    if left_out:
        kept["left_out"] = f"{left_out} of {len(sizes)} details: a line holds at most {MAX_LINE} bytes"
    return dataclasses.replace(attempt, details=kept, message=_shortened_text(attempt.message))


def _shortened_text(text: str) -> str:
    if len(_json(text)) <= _MESSAGE_BUDGET:
        return text
    # One character takes at most twelve bytes: two escapes.
    return f"{text[: _MESSAGE_BUDGET // 12]} [cut: {len(text)} characters in all]"
