"""What a command did: the supervisor's reply, parsed without trust, and the output that callers get."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_COMMAND = 4 << 20
"""The longest command, in bytes."""

_MAX_PATH = 4096
_MAX_NOTE = 1000
_MAX_NOTES = 20
_STATUSES = range(256)


@dataclass(frozen=True)
class Output:
    """The outcome of a command."""

    text: str
    """What it wrote to stdout and stderr, in the order in which it came; a long middle is left out. Lines in brackets
    are ours: what happened to the shell, and what background processes wrote since the previous command."""
    file: Path | None
    """The path inside the sandbox of the file with all of a text whose middle was left out."""
    status: int | None
    """Exit status, 128 and more for a signal; also where the command ended the shell. None if it timed out, was not
    run, or was ended with everything else in the sandbox."""
    timed_out: bool
    seconds: float
    ran: bool = True

    @classmethod
    def not_run(cls, reason: str) -> Output:
        """Return the outcome of a command that was refused."""
        return cls(f"[{reason}; nothing was run]", None, None, timed_out=False, seconds=0.0, ran=False)

    @classmethod
    def parse(cls, message: Mapping[str, Any], earlier_notes: Sequence[str], seconds: float) -> Output:
        """Return the outcome that a supervisor's reply tells, all of which an agent can make up.

        Fields of the wrong type are treated as missing. ``earlier_notes`` say what happened before the command.
        """
        text, background = append_notes("", earlier_notes), clean_text(message.get("background_text"))
        if background:
            text += f"[written in the background before this command]\n{background}\n[this command]\n"
        text += clean_text(message.get("text"))
        file, status = clean_path(message.get("file")), message.get("status")
        return cls(
            text=append_notes(text, notes_in(message)),
            file=Path(file) if file else None,
            status=status if type(status) is int and status in _STATUSES else None,
            timed_out=message.get("timed_out") is True,
            seconds=seconds,
        )


def command_refusal(command: str, timeout_s: float) -> str:
    """Return why a command cannot be run, or the empty string."""
    if "\0" in command:
        return f"the command has a NUL character, at position {command.index(chr(0))}; bash cannot read it"
    if len(command) > MAX_COMMAND or len(command.encode(errors="replace")) > MAX_COMMAND:
        return f"the command is longer than {MAX_COMMAND >> 20} MiB; write the text to a file in pieces"
    if not timeout_s > 0:
        return f"the time limit must be more than 0 seconds, not {timeout_s}"
    return ""


def notes_in(message: Mapping[str, Any]) -> list[str]:
    """Return the notes of a supervisor's reply."""
    notes = message.get("notes")
    return [clean_text(note)[:_MAX_NOTE] for note in (notes if isinstance(notes, list) else [])[-_MAX_NOTES:]]


def append_notes(text: str, notes: Sequence[str]) -> str:
    """Return ``text`` with each note on a line of its own, in brackets; names in notes can make no further lines."""
    lines = "".join(f"[{_one_line(note)}]\n" for note in notes)
    return text + ("\n" if lines and text and not text.endswith("\n") else "") + lines


def _one_line(text: str) -> str:
    """Return text with line ends and control characters as Python writes them in a literal."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def clean_text(value: object) -> str:
    """Return text that can be sent on: no lone surrogates, no NUL."""
    if not isinstance(value, str):
        return ""
    return value.encode(errors="replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def clean_path(value: object) -> str:
    """Return an absolute path, or the empty string."""
    text = clean_text(value)
    return text if PurePosixPath(text).is_absolute() and len(text) < _MAX_PATH else ""
