"""What a session's supervisor answers, read as what it is: anything that an agent may have made up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Reply"]

_LONGEST_PATH = 4096
_LONGEST_NOTE = 1000
_NOTES = 20
_STATUSES = range(256)


@dataclass(frozen=True)
class Reply:
    """What came of a command, by the supervisor's word."""

    text: str
    late: str
    """What background processes wrote before it."""
    whole: Path | None
    status: int | None
    timed_out: bool
    notes: list[str]
    directory: str
    """Where the shell is now; empty if that is not known."""

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Reply:
        """Read an answer; what is not of the right kind in it is left out."""
        status, whole, notes = answer.get("status"), _path(answer.get("whole")), answer.get("notes")
        found = notes if isinstance(notes, list) else []
        return cls(
            text=_text(answer.get("text")),
            late=_text(answer.get("late")),
            whole=Path(whole) if whole else None,
            status=status if type(status) is int and status in _STATUSES else None,
            timed_out=answer.get("timed_out") is True,
            notes=[_text(note)[:_LONGEST_NOTE] for note in found[-_NOTES:]],
            directory=_path(answer.get("directory")),
        )


def _text(value: object) -> str:
    """Return text that can be sent on: no lone surrogates, no NUL."""
    if not isinstance(value, str):
        return ""
    return value.encode(errors="replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def _path(value: object) -> str:
    """Return an absolute path, or the empty string."""
    text = _text(value)
    return text if PurePosixPath(text).is_absolute() and len(text) < _LONGEST_PATH else ""
