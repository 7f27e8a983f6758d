"""Rust source as text: what is left without comments and layout, and harmless variations of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

__all__ = ["canonical", "varied"]

# Line by line and blind to strings, so that programs inside any other text come out the same as alone.
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SPACE = re.compile(r"\s+")

# What a line may not be broken in: comments, strings, characters. Lifetimes and labels have no second quote.
_WHOLE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|"(?:[^"\\]|\\.)*"|'(?:[^'\\\n]|\\[^\n]{1,9})'""",
    re.DOTALL,
)
_REMARKS = (
    (r"read_line|read_to_string|stdin|parse", ("Read the input", "Parse the input", "Get the values")),
    (r"println!|print!|write", ("Print the answer", "Output the result")),
    (r"^(pub )?fn ", ("Helper function", "Solve one case")),
    (r"^(for|while|loop)\b", ("Loop over all items", "Main loop", "Go through them one by one")),
    (r"^if\b", ("Check the condition", "Special case")),
    (r"^let mut\b", ("Keep track of the state", "Initialize", "Accumulator")),
)
_REMARK_ODDS, _BLANK_ODDS = 0.18, 0.06


def canonical(text: str) -> str:
    """Return the text without comments and white space; that of a program is part of that of a text holding it."""
    return _SPACE.sub("", _COMMENT.sub("", text))


def varied(source: str, draw: random.Random) -> str:
    """Return the same program with a few comments and blank lines more, never inside a string."""
    lines: list[str] = []
    start = 0
    for end in [*_line_ends(source), len(source)]:
        line = source[start:end]
        start = end + 1
        indent = line[: len(line) - len(line.lstrip())]
        if lines and draw.random() < _BLANK_ODDS:
            lines.append("")
        if (remark := _remark(line.strip(), draw)) and draw.random() < _REMARK_ODDS:
            lines.append(f"{indent}// {remark}")
        lines.append(line)
    return "\n".join(lines).strip("\n") + "\n"


def _line_ends(source: str) -> list[int]:
    """Return where lines end, but for ends inside strings and block comments."""
    inside = [match.span() for match in _WHOLE.finditer(source)]
    ends = (match.start() for match in re.finditer("\n", source))
    return [end for end in ends if not any(start <= end < stop for start, stop in inside)]


def _remark(line: str, draw: random.Random) -> str:
    for pattern, remarks in _REMARKS:
        if re.search(pattern, line):
            return draw.choice(remarks)
    return ""
