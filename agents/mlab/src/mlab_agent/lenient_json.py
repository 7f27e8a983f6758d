"""Read JSON as models write it: line breaks in strings, trailing commas, other quotes, Python's literals.

What has one possible reading is repaired, and each repair is noted; anything else is an error that says where and what
it was. An unescaped quote in a string is never guessed at: a file's content would be wrong without anybody noticing.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any, NoReturn

_TOKEN = re.compile(
    r"(?P<quote>(?>\"\"\"|'''|[\"']))(?P<body>(?:[^\\]|\\[\s\S])*?)(?P=quote)"
    r"|\u201c(?P<curly>(?:[^\\\u201d]|\\[\s\S])*)\u201d"
    r"|(?P<comma>,)(?=\s*[}\]])|(?P<literal>\b(?:True|False|None)\b)|[\[\]{}]"
    r"|(?P<unterminated>[\"'\u201c])"
)
_SPECIAL = re.compile(r"\\(?P<escaped>u[0-9a-fA-F]{4}|[\s\S])|[\"\n]")
_LITERALS = {"True": "true", "False": "false", "None": "null"}
_MAX_DEPTH = 50
_CUT_OFF = "has no end; was the reply cut off?"


class JsonError(ValueError):
    """The text cannot be read; the message says where and why."""


def read_object(text: str, start: int = 0) -> tuple[dict[str, Any], int, list[str]]:
    """Read the object that begins at ``start``.

    Returns:
        The object, the position after it, and what was repaired.

    Raises:
        JsonError: if it has no single reading.
    """
    notes: list[str] = []
    parts: list[str] = []
    depth, end = 0, start
    for token in _TOKEN.finditer(text, start):
        if token["unterminated"]:  # nothing after it can be read
            break
        parts += (text[end : token.start()], _as_json(token, notes))
        end = token.end()
        depth += (token[0] in "[{") - (token[0] in "]}")
        if depth > _MAX_DEPTH:
            raise _error(text, start, token.start(), "it is nested too deeply")
        if depth == 0:
            break
    else:
        end = len(text)
    try:
        try:
            value = _DECODER.decode("".join(parts))
        except json.JSONDecodeError:
            _DECODER.raw_decode(text, start)  # fails as well, with the position in the text as it is
            raise
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise _error(text, start, error.pos, _explanation(text, error)) from None
    except UnicodeEncodeError:
        raise _error(text, start, start, r"a \u escape is half of a character") from None
    except ValueError as error:
        raise _error(text, start, start, str(error)) from None
    if not isinstance(value, dict):
        raise JsonError("the input must be a JSON object, which begins with {")
    return value, end, list(dict.fromkeys(notes))


def _as_json(token: re.Match[str], notes: list[str]) -> str:
    if token["comma"]:
        notes.append("a trailing comma was ignored")
        return ""
    if literal := token["literal"]:
        notes.append(f"{literal} was read as {_LITERALS[literal]}")
        return _LITERALS[literal]
    if (body := token["curly"] if token["quote"] is None else token["body"]) is None:
        return token[0]
    if token["quote"] != '"':
        notes.append(f"a string between {token['quote'] or '“'} was read as one between double quotes")
    return f'"{_SPECIAL.sub(functools.partial(_special_as_json, notes=notes), body)}"'


def _special_as_json(special: re.Match[str], notes: list[str]) -> str:
    """Return what belongs in a JSON string in the place of an escape, a quote or a line break."""
    escaped = special["escaped"]
    if special[0] == "\n":
        notes.append(r"a line break in a string was read as \n")
        return r"\n"
    if escaped is None or escaped == "'":
        return r"\"" if escaped is None else "'"
    if len(escaped) > 1 or escaped in r'"\/bfnrt':
        return special[0]
    notes.append(
        rf"the backslash of \{escaped} was kept" if escaped != "\n" else "a backslash at a line's end was kept"
    )
    return rf"\\{escaped}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f'"{name}" is given twice')
        values[name] = value
    return values


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON value")


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_unique, parse_constant=_refuse)


def _explanation(text: str, error: json.JSONDecodeError) -> str:
    line = text[error.pos : error.pos + 30].split("\n", maxsplit=1)[0]
    before = text[: error.pos].rstrip()
    if error.msg.startswith("Unterminated string"):
        return f"the string {line!r} {_CUT_OFF}"
    if not text[error.pos :].strip():
        return f"the object {_CUT_OFF}"
    if "property name" in error.msg:
        return f"a name in double quotes was expected, not {line!r}"
    if "':'" in error.msg:
        return f'a colon was expected after "{before[:-1].rpartition(chr(34))[2][:40]}", not {line!r}'
    if "','" in error.msg:
        hint = ' (a double quote inside a string must be written \\")' if before.endswith('"') else ""
        return f"a comma or }} was expected, not {line!r}{hint}"
    return f"a value was expected, not {line!r}"


def _error(text: str, start: int, position: int, message: str) -> JsonError:
    before = text[start:position]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return JsonError(f"line {line}, column {column} of the input: {message}")
