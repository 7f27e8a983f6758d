"""The prompt to the model that edits a text, and its reply: either the whole text, or replacements of exact lines.

A reply shows that it is complete: its last line is a marker that cannot be in the text. So a reply that was cut off, or
a code fence within a script, never leads to a truncated file.
"""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[\w+-]*[ \t]*$", re.MULTILINE)
_OMISSION = re.compile(
    r"^[ \t]*(?:#|//|--|%)?[ \t]*(?:\.{3}|\u2026).{0,12}"
    r"\b(?:rest|existing|remaining|unchanged|same|previous|omitted)\b.*$",
    re.IGNORECASE | re.MULTILINE,
)


class EditReplyError(Exception):
    """The reply is no edited text; the message says why."""


def choose_marker(old: str, instruction: str) -> str:
    """Return a word that is in neither text; the same texts always give the same word."""
    for count in range(1000):
        marker = "EDIT-" + hashlib.sha256(f"{count}\0{instruction}\0{old}".encode(errors="replace")).hexdigest()[:6]
        if marker not in old and marker not in instruction:
            return marker
    raise AssertionError("no marker was found")


def edit_prompt(name: str, old: str, instruction: str, marker: str) -> str:
    """Return the prompt."""
    return f"""Edit the text below, {name}, as told. Change nothing else, and keep the indentation.

What to do: {instruction}

Reply in one of these two forms, without fences, and with the marker lines exactly as here.

1. The whole new text, never shortened:
{marker} WHOLE
(the new text)
{marker} DONE

2. Replacements, which suit a long text with few changes. The old lines must be copied exactly, and stand in the text \
once only; give as many replacements as are needed:
{marker} OLD
(lines as they are)
{marker} NEW
(lines that take their place; none to remove them)
{marker} DONE

The last line of the reply is {marker} DONE in any case. The text:
{marker} TEXT
{old if old.endswith(chr(10)) or not old else old + chr(10)}{marker} END
"""


def read_edited_text(reply: str, old: str, marker: str) -> str:
    """Return the edited text.

    Raises:
        EditReplyError: if the reply does not determine it.
    """
    reply = reply.replace("\r\n", "\n")
    lines = [
        (line.strip("*` \t")[len(marker) :].strip() if marker in line else None, line) for line in reply.split("\n")
    ]
    markers = [(index, word) for index, (word, _line) in enumerate(lines) if word is not None]
    if not markers:
        new = _fenced(reply)
    elif markers[-1][1] != "DONE":
        raise EditReplyError(f"it does not end with {marker} DONE, so that it was cut off")
    else:
        parts = [
            (word, "\n".join(line for _word, line in lines[index + 1 : after]))
            for (index, word), (after, _next) in pairwise(markers)
        ]
        new = _assemble(parts, old, marker)
    _check_complete(new, old)
    if new and old.endswith("\n") and not new.endswith("\n"):
        new += "\n"
    return new.replace("\n", "\r\n") if "\r\n" in old and "\n" not in old.replace("\r\n", "") else new


def _assemble(parts: list[tuple[str, str]], old: str, marker: str) -> str:
    words = [word for word, _text in parts]
    if words == ["WHOLE"]:
        text = _without_fence(parts[0][1])
        return text + "\n" if text else text
    if not words or words != ["OLD", "NEW"] * (len(words) // 2):
        raise EditReplyError(
            f"its marker lines are {', '.join([*words, 'DONE'])}; expected {marker} WHOLE, or OLD and NEW in turn"
        )
    new = old.replace("\r\n", "\n")
    for (_old, before), (_new, after) in zip(parts[::2], parts[1::2], strict=True):
        new = _replace_lines(new, before, after)
    return new


def _replace_lines(text: str, before: str, after: str) -> str:
    """Replace whole lines that occur exactly once."""
    if not before.strip():
        raise EditReplyError("the old lines of a replacement are empty")
    padded = f"\n{text}" if text.endswith("\n") else f"\n{text}\n"
    count = _occurrences(padded, f"\n{before}\n")
    if count != 1:
        problem = "are not in the text" if count == 0 else f"are in the text {count} times"
        raise EditReplyError(f"the old lines that begin with {before.strip().splitlines()[0][:60]!r} {problem}")
    new = padded.replace(f"\n{before}\n", f"\n{after}\n" if after else "\n", 1)[1:]
    return new if text.endswith("\n") else new.removesuffix("\n")


def _occurrences(text: str, part: str) -> int:
    """Count also occurrences that share a line end."""
    return sum(text.startswith(part, match.start()) for match in re.finditer(re.escape(part[0]), text))


def _fenced(reply: str) -> str:
    """Return the text of a reply that is one code block, which some models write instead of the markers."""
    fences = list(_FENCE.finditer(reply))
    if len(fences) == 1:
        raise EditReplyError("its code block has no end, so that it was cut off")
    if len(fences) != 2 or reply[fences[1].end() :].strip() or fences[0][1] != fences[1][1]:  # noqa: PLR2004 - a pair
        raise EditReplyError("it has neither the marker lines nor exactly one code block at its end")
    return reply[fences[0].end() + 1 : fences[1].start()]


def _without_fence(text: str) -> str:
    """Remove a fence around the whole text, and none within."""
    fences = list(_FENCE.finditer(text))
    if len(fences) >= 2 and not text[: fences[0].start()].strip() and not text[fences[-1].end() :].strip():  # noqa: PLR2004
        return text[fences[0].end() + 1 : fences[-1].start()].removesuffix("\n")
    return text


def _check_complete(new: str, old: str) -> None:
    for match in _OMISSION.finditer(new):
        if match[0].strip() not in old:
            raise EditReplyError(f"it leaves something out: {match[0].strip()[:80]!r}")
    if old.strip() and not new.strip():
        raise EditReplyError("the new text is empty")
