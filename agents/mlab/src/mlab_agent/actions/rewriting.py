"""What the editing model is asked, and reading its reply: either the whole text, or replacements of exact lines.

A reply shows by itself that it is whole: its last line is a marker that cannot be in the text. So a reply that was cut
off, and fences within a script, never make a truncated file.
"""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise

__all__ = ["RewriteError", "marker_of", "read_rewrite", "request"]

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[\w+-]*[ \t]*$", re.MULTILINE)
_LEFT_OUT = re.compile(
    r"^[ \t]*(?:#|//|--|%)?[ \t]*(?:\.{3}|\u2026).{0,12}"
    r"\b(?:rest|existing|remaining|unchanged|same|previous|omitted)\b.*$",
    re.IGNORECASE | re.MULTILINE,
)


class RewriteError(Exception):
    """The reply is no rewriting; the text says why."""


def marker_of(old: str, instruction: str) -> str:
    """Return letters that are in neither text, and the same for the same texts."""
    for count in range(1000):
        marker = "EDIT-" + hashlib.sha256(f"{count}\0{instruction}\0{old}".encode(errors="replace")).hexdigest()[:6]
        if marker not in old and marker not in instruction:
            return marker
    raise AssertionError("no marker was found")


def request(name: str, old: str, instruction: str, marker: str) -> str:
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


def read_rewrite(reply: str, old: str, marker: str) -> str:
    """Return the new text.

    Raises:
        RewriteError: if it is not certain what that is.
    """
    reply = reply.replace("\r\n", "\n")
    lines = [
        (line.strip("*` \t")[len(marker) :].strip() if marker in line else None, line) for line in reply.split("\n")
    ]
    marks = [(index, word) for index, (word, _line) in enumerate(lines) if word is not None]
    if not marks:
        new = _fenced(reply)
    elif marks[-1][1] != "DONE":
        raise RewriteError(f"it does not end with {marker} DONE, so that it was cut off")
    else:
        parts = [
            (word, "\n".join(line for _word, line in lines[index + 1 : after]))
            for (index, word), (after, _next) in pairwise(marks)
        ]
        new = _assembled(parts, old, marker)
    _check_whole(new, old)
    if new and old.endswith("\n") and not new.endswith("\n"):
        new += "\n"
    return new.replace("\n", "\r\n") if "\r\n" in old and "\n" not in old.replace("\r\n", "") else new


def _assembled(parts: list[tuple[str, str]], old: str, marker: str) -> str:
    words = [word for word, _text in parts]
    if words == ["WHOLE"]:
        text = _without_fence(parts[0][1])
        return text + "\n" if text else text
    if not words or words != ["OLD", "NEW"] * (len(words) // 2):
        raise RewriteError(
            f"its marker lines are {', '.join([*words, 'DONE'])}; expected {marker} WHOLE, or OLD and NEW in turn"
        )
    new = old.replace("\r\n", "\n")
    for (_old, before), (_new, after) in zip(parts[::2], parts[1::2], strict=True):
        new = _replaced(new, before, after)
    return new


def _replaced(text: str, before: str, after: str) -> str:
    """Replace whole lines that are there exactly once."""
    if not before.strip():
        raise RewriteError("the old lines of a replacement are empty")
    padded = f"\n{text}" if text.endswith("\n") else f"\n{text}\n"
    count = _occurrences(padded, f"\n{before}\n")
    if count != 1:
        how = "are not in the text" if count == 0 else f"are in the text {count} times"
        raise RewriteError(f"the old lines that begin with {before.strip().splitlines()[0][:60]!r} {how}")
    new = padded.replace(f"\n{before}\n", f"\n{after}\n" if after else "\n", 1)[1:]
    return new if text.endswith("\n") else new.removesuffix("\n")


def _occurrences(text: str, part: str) -> int:
    """Count also those that share a line end."""
    return sum(text.startswith(part, found.start()) for found in re.finditer(re.escape(part[0]), text))


def _fenced(reply: str) -> str:
    """Return the text of a reply that is one fenced block, as models write that do not keep to the form."""
    fences = list(_FENCE.finditer(reply))
    if len(fences) == 1:
        raise RewriteError("its code block has no end, so that it was cut off")
    if len(fences) != 2 or reply[fences[1].end() :].strip() or fences[0][1] != fences[1][1]:  # noqa: PLR2004 - a pair
        raise RewriteError("it has neither the marker lines nor exactly one code block at its end")
    return reply[fences[0].end() + 1 : fences[1].start()]


def _without_fence(text: str) -> str:
    """Remove a fence around all of a text, and none within."""
    fences = list(_FENCE.finditer(text))
    if len(fences) >= 2 and not text[: fences[0].start()].strip() and not text[fences[-1].end() :].strip():  # noqa: PLR2004
        return text[fences[0].end() + 1 : fences[-1].start()].removesuffix("\n")
    return text


def _check_whole(new: str, old: str) -> None:
    for found in _LEFT_OUT.finditer(new):
        if found[0].strip() not in old:
            raise RewriteError(f"it leaves something out: {found[0].strip()[:80]!r}")
    if old.strip() and not new.strip():
        raise RewriteError("the new text is empty")
