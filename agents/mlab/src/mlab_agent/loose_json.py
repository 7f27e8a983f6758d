"""JSON as models write it: line breaks in strings, trailing commas, other quotes, Python's literals.

What can be read in one way only is read, and said; anything else is an error that says exactly where and what it was.
An unescaped quote in a string is never guessed at: a file's content would be wrong without anybody noticing.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["LooseError", "read_object"]

_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?(?:[eE][+-]?\d{1,4})?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_]\w*")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "'": "'"}
_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d"}
_DEEPEST = 50
_HIGH, _LOW, _SURROGATES_END = 0xD800, 0xDC00, 0xE000


class LooseError(ValueError):
    """The text cannot be read; the message says where and why."""


def read_object(text: str, start: int = 0) -> tuple[dict[str, Any], int, list[str]]:
    """Read the object that begins at ``start``.

    Returns:
        The object, the position after it, and what was not as JSON has it.

    Raises:
        LooseError: if it cannot be read in one way only.
    """
    reader = _Reader(text, start)
    value, end = reader.value(start, 0)
    if not isinstance(value, dict):
        raise LooseError("the input must be a JSON object, which begins with {")
    return value, end, list(dict.fromkeys(reader.notes))


class _Reader:
    def __init__(self, text: str, origin: int) -> None:
        self._text, self._origin = text, origin
        self.notes: list[str] = []

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        at = self._skip(at)
        first = self._text[at : at + 1]
        if not first:
            raise self._error(at, "it ends where a value was expected; was the reply cut off?")
        if depth > _DEEPEST:
            raise self._error(at, "it is nested too deeply")
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._array(at, depth)
        if first in _QUOTES:
            return self._string(at)
        if number := _NUMBER.match(self._text, at):
            text = number[0]
            return (float(text) if any(each in text for each in ".eE") else int(text)), number.end()
        if (word := _WORD.match(self._text, at)) and word[0] in _WORDS:
            if word[0][0].isupper():
                self.notes.append(f"{word[0]} was read as {word[0].lower().replace('none', 'null')}")
            return _WORDS[word[0]], word.end()
        raise self._error(at, f"a value was expected, not {self._shown(at)}")

    def _object(self, start: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self._skip(start + 1)
        while self._peek(at, start, "object") != "}":
            if self._text[at] not in _QUOTES:
                raise self._error(at, f"a name in double quotes was expected, not {self._shown(at)}")
            key, after = self._string(at)
            if key in found:
                raise self._error(at, f'"{key}" is given twice')
            after = self._skip(after)
            if self._peek(after, start, "object") != ":":
                raise self._error(after, f'a colon was expected after "{key[:40]}", not {self._shown(after)}')
            found[key], after = self.value(after + 1, depth + 1)
            at = self._after(after, start, "}", "object")
        return found, at + 1

    def _array(self, start: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self._skip(start + 1)
        while self._peek(at, start, "list") != "]":
            value, after = self.value(at, depth + 1)
            found.append(value)
            at = self._after(after, start, "]", "list")
        return found, at + 1

    def _after(self, after: int, start: int, close: str, what: str) -> int:
        """Return where the next member, or the end, is."""
        at = self._skip(after)
        mark = self._peek(at, start, what)
        if mark == close:
            return at
        if mark != ",":
            quote = ' (a double quote inside a string must be written \\")' if self._text[after - 1] in "\"'" else ""
            raise self._error(at, f"a comma or {close} was expected, not {self._shown(at)}{quote}")
        at = self._skip(at + 1)
        if self._peek(at, start, what) == close:
            self.notes.append("a trailing comma was ignored")
        return at

    def _string(self, start: int) -> tuple[str, int]:
        text = self._text
        quote = text[start]
        close = _QUOTES[quote]
        if quote * 3 == text[start : start + 3]:
            close = quote * 3
        if quote != '"' or len(close) > 1:
            self.notes.append(
                f"a string between {quote if len(close) == 1 else close} was read as one between double quotes"
            )
        special = re.compile(rf"[\\\n]|{close}")
        parts: list[str] = []
        at = start + (max(1, len(close)))
        while found := special.search(text, at):
            parts.append(text[at : found.start()])
            if found[0] == close:
                return self._joined(parts, start), found.end()
            if found[0] == "\n":
                parts.append("\n")
                self.notes.append(r"a line break in a string was read as \n")
                at = found.end()
            else:
                part, at = self._escape(found.end(), start)
                parts.append(part)
        raise self._error(start, f"the string {self._shown(start)} has no end; was the reply cut off?")

    def _escape(self, at: int, start: int) -> tuple[str, int]:
        text = self._text
        mark = text[at : at + 1]
        if mark == "u" and (code := _HEX.match(text, at + 1)):
            return chr(int(code[0], 16)), code.end()
        if mark in _ESCAPES and mark:
            return _ESCAPES[mark], at + 1
        if not mark:
            raise self._error(start, f"the string {self._shown(start)} has no end; was the reply cut off?")
        self.notes.append(
            rf"the backslash of \{mark} was kept" if mark != "\n" else "a backslash at a line's end was kept"
        )
        return "\\", at

    def _joined(self, parts: list[str], start: int) -> str:
        joined = "".join(parts)
        if not any(_HIGH <= ord(each) < _SURROGATES_END for each in joined):
            return joined
        try:
            return joined.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self._error(start, r"a \u escape is half of a character") from None

    def _skip(self, at: int) -> int:
        space = _SPACE.match(self._text, at)
        assert space
        return space.end()

    def _peek(self, at: int, start: int, what: str) -> str:
        if at >= len(self._text):
            raise self._error(start, f"the {what} that begins here has no end; was the reply cut off?")
        return self._text[at]

    def _shown(self, at: int) -> str:
        line = self._text[at : at + 30].split("\n")[0]
        return repr(line) if line else "the end of a line"

    def _error(self, at: int, what: str) -> LooseError:
        before = self._text[self._origin : at]
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        return LooseError(f"line {line}, column {column} of the input: {what}")
