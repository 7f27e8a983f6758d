"""Make any text safe to look at: what agents write may hold characters that nobody sees or that reorder a line."""

from __future__ import annotations

import re
from itertools import groupby

from markupsafe import Markup, escape

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
_MARKS = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{3})[\u0300-\u036f"
    "\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
_LAST_OF_FOUR_DIGITS = 0xFFFF
_KINDS = {"+": "ins", "-": "del"}


def visible(value: object) -> object:
    """Return a value for a page: in texts, control characters and those that reorder text stand as their code.

    Marks that pile up on one letter are cut to three. Markup, which is ours, stays as it is.
    """
    if not isinstance(value, str) or isinstance(value, Markup) or (value.isascii() and value.isprintable()):
        return value
    shown = _INVISIBLE.sub(_code, value)
    return shown if shown.isascii() else _MARKS.sub(r"\1", shown)


def breakable(name: str) -> Markup:
    """Return a name that a narrow column breaks after an underscore or a slash, by spaces without width."""
    return Markup(re.sub("([_/])", "\\1\u200b", escape(visible(name))))  # noqa: S704 - escaped


def diff_markup(diff: str) -> Markup:
    """Return the lines of a unified diff with what is added in ``ins`` and what is removed in ``del``."""
    lines = str(visible(diff)).splitlines(keepends=True)
    groups = ((kind, escape("".join(group))) for kind, group in groupby(lines, key=_kind))
    return Markup("".join(f"<{kind}>{text}</{kind}>" if kind else text for kind, text in groups))  # noqa: S704 - escaped


def _kind(line: str) -> str:
    return "" if line.startswith(("+++ ", "--- ")) else _KINDS.get(line[:1], "")


def _code(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\u{number:04x}" if number <= _LAST_OF_FOUR_DIGITS else f"\\U{number:08x}"
