"""TOML as text, with its comments: in which line a key stands, and tables in another order."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HEADER = re.compile(r"\[\[?[^\[\]]+\]\]?\s*(?:#.*)?$")
_PART = re.compile(r'"((?:[^"\\]|\\.)*)"|\[(\d+)\]|([A-Za-z0-9_-]+)')

Keys = tuple[str | int, ...]


@dataclass(frozen=True)
class Statement:
    """A key with its value, or the head of a table."""

    keys: tuple[str, ...]
    """From the top of the document."""
    line: int
    """From 1."""
    lines: tuple[str, ...]
    is_table: bool


def statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a document in TOML; what is none ends them."""
    table: tuple[str, ...] = ()
    pending: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not pending and (not line.strip() or line.lstrip().startswith("#")):
            continue
        if not pending and _HEADER.match(line):
            table = _path(line)
            yield Statement(table, number, (line,), is_table=True)
            continue
        pending.append(line)
        if keys := _path("\n".join(pending)):
            yield Statement((*table, *keys), number - len(pending) + 1, tuple(pending), is_table=False)
            pending = []


def _path(text: str) -> tuple[str, ...]:
    """Return the keys that lead to the value of one statement; nothing if it is not complete."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return ()
    head = text.partition("=")[0] if not _HEADER.match(text.partition("\n")[0]) else text
    depth = len(_PART.findall(head.partition("#")[0]))
    keys: list[str] = []
    while len(keys) < depth and isinstance(data, dict) and data:
        key, data = next(iter(data.items()))
        keys.append(key)
        data = data[0] if isinstance(data, list) and data and isinstance(data[0], dict) and len(keys) < depth else data
    return tuple(keys)


def line_of(text: str, keys: Keys) -> int:
    """Return the line of a key, from 1, or of the nearest table around it; positions in lists of tables count too."""
    best, length, counts = 1, 0, dict[tuple[str, ...], int]()
    wanted = tuple(key for key in keys if isinstance(key, str))
    positions = [key for key in keys if isinstance(key, int)]
    for statement in statements(text):
        if statement.is_table and statement.lines[0].startswith("[["):
            counts[statement.keys] = counts.get(statement.keys, -1) + 1
        in_other = any(
            wanted[: len(table)] == table and positions and count != positions[0] for table, count in counts.items()
        )
        common = 0
        while common < min(len(wanted), len(statement.keys)) and wanted[common] == statement.keys[common]:
            common += 1
        if common == len(statement.keys) > length and not in_other:
            best, length = statement.line, common
    return best


def keys_of(spelled: str) -> Keys:
    """Return the keys of a spelled one, such as ``profiles.cpu`` or ``published[0].name``."""
    return tuple(int(part[2]) if part[2] else part[1] or part[3] for part in _PART.finditer(spelled))


def reordered(text: str, rank: Callable[[tuple[str, ...]], tuple[object, ...]]) -> str:
    """Return a document with its top keys and its tables in the order of ``rank``, each with the comments above it.

    Args:
        text: the document, which is valid.
        rank: of the keys of a statement at the top, or of a table; statements of equal rank keep their order.
    """
    blocks = _blocks(text)
    preamble, top, tables = blocks
    new_top = sorted(top, key=lambda block: rank(block[0]))
    new_tables = sorted(tables, key=lambda block: rank(block[0]))
    if (new_top, new_tables) == (top, tables):
        return text
    head = "\n".join([*preamble, *("\n".join(lines).strip("\n") for _keys, lines in new_top)]).strip("\n")
    parts = [head, *("\n".join(lines).strip("\n") for _keys, lines in new_tables)]
    return "\n\n".join(filter(None, parts)) + "\n"


_Block = tuple[tuple[str, ...], list[str]]


def _blocks(text: str) -> tuple[list[str], list[_Block], list[_Block]]:
    """Return the comments at a document's top, its top keys, and its tables with all that they hold."""
    lines = text.splitlines()
    preamble: list[str] = []
    top: list[_Block] = []
    tables: list[_Block] = []
    done = 0
    for statement in statements(text):
        between = lines[done : statement.line - 1]
        done = statement.line - 1 + len(statement.lines)
        own = _comment_above(between)
        before = between[: len(between) - len(own)]
        if not top and not tables:
            preamble, own = between, []
        elif tables:
            tables[-1][1].extend(before)
        else:
            top[-1][1].extend(before)
        if statement.is_table:
            tables.append((statement.keys, [*own, *statement.lines]))
        elif tables:
            tables[-1][1].extend([*own, *statement.lines])
        else:
            top.append((statement.keys, [*own, *statement.lines]))
    (tables or top)[-1][1].extend(lines[done:])
    return preamble, top, tables


def _comment_above(lines: list[str]) -> list[str]:
    """Return the comment that ends these lines, without an empty line after it."""
    count = 0
    while count < len(lines) and lines[-1 - count].startswith("#"):
        count += 1
    return lines[len(lines) - count :]
