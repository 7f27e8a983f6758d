"""The prompt to the model that edits a text, and its reply: either the whole text, or replacements of exact lines.

The last line of a reply is a marker that cannot be in the text. So a reply that was cut off, or a code fence within a
script, never leads to a truncated file.
"""

from __future__ import annotations

import hashlib
import re

_FENCED = re.compile(r"\A[^`~]*^(`{3,}|~{3,})[\w+-]*\n(.*)^\1[ \t]*\Z", re.MULTILINE | re.DOTALL)
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
    before = old.replace("\r\n", "\n")
    _start, *parts = re.split(rf"^[*` \t]*{marker} *(\w*)[*` \t]*(?:\n|\Z)", reply, flags=re.MULTILINE)
    words, texts = parts[::2], parts[1::2]
    if not words:  # some models write a code block instead of the markers
        block = _FENCED.search(reply.strip())
        if block is None or re.search(rf"^{block[1]}", block[2], re.MULTILINE):
            raise EditReplyError("it has neither the marker lines nor exactly one code block at its end")
        new = block[2]
    elif words[-1] != "DONE":
        raise EditReplyError(f"it does not end with {marker} DONE, so that it was cut off")
    elif words == ["WHOLE", "DONE"]:
        block = _FENCED.search(texts[0].rstrip())
        new = block[2] if block else texts[0]
    elif words[:-1] == ["OLD", "NEW"] * (len(words) // 2) and len(words) > 1:
        new = before
        for lines, replacement in zip(texts[:-1:2], texts[1:-1:2], strict=True):
            new = _replace_lines(new, lines, replacement)
    else:
        raise EditReplyError(
            f"its marker lines are {', '.join(words)}; expected {marker} WHOLE, or OLD and NEW in turn"
        )
    _check_complete(new, old)
    if new and old.endswith("\n") and not new.endswith("\n"):
        new += "\n"
    return new.replace("\n", "\r\n") if "\r\n" in old and "\n" not in old.replace("\r\n", "") else new


def _replace_lines(text: str, lines: str, replacement: str) -> str:
    """Replace whole lines that occur exactly once."""
    if not lines.strip():
        raise EditReplyError("the old lines of a replacement are empty")
    padded = f"\n{text}" if text.endswith("\n") else f"\n{text}\n"
    count = len(re.findall(rf"(?=\n{re.escape(lines)})", padded))
    if count != 1:
        problem = "are not in the text" if count == 0 else f"are in the text {count} times"
        raise EditReplyError(f"the old lines that begin with {lines.strip().splitlines()[0][:60]!r} {problem}")
    new = padded.replace(f"\n{lines}", f"\n{replacement}", 1)[1:]
    return new if text.endswith("\n") else new.removesuffix("\n")


def _check_complete(new: str, old: str) -> None:
    for match in _OMISSION.finditer(new):
        if match[0].strip() not in old:
            raise EditReplyError(f"it leaves something out: {match[0].strip()[:80]!r}")
    if old.strip() and not new.strip():
        raise EditReplyError("the new text is empty")
