"""Texts that are too long to be shown: the middle goes, and a line says what went."""

from __future__ import annotations

__all__ = ["cut_middle"]


def cut_middle(text: str, limit: int, where: str = "") -> str:
    """Return a text of about ``limit`` characters at most, whose beginning and end are the original's.

    Args:
        text: any text.
        limit: characters that are shown, beside the line that says what is left out.
        where: how the rest can be had, for that line.
    """
    if len(text) <= limit:
        return text
    head = limit // 2
    start, end = text[:head], text[len(text) - (limit - head) :]
    lines = text.count("\n", head, len(text) - (limit - head))
    hint = f"; {where}" if where else ""
    return f"{start}\n[... {len(text) - limit} characters ({lines} line ends) left out{hint} ...]\n{end}"
