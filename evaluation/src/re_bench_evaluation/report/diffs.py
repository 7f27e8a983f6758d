"""How a kept submission differs from the one before. Names, contents and sizes are an agent's, and so bounded."""

from __future__ import annotations

import difflib
import os
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from re_bench_evaluation.report.run_data import Diff, FileDiff
from re_bench_evaluation.report.text import shortened, valid_unicode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from re_bench_evaluation.report.run_data import FileChange

_MAX_FILES = 400
"""Of a submission that are looked at."""
_SHOWN_FILES = 40
"""Of a diff."""
_MAX_COMPARED = 64 << 20
"""Bytes of a file; of longer ones only the sizes are compared."""
_MAX_TEXT = 128 << 10
"""Bytes of a file whose lines are compared."""
_MAX_PAIRS = 50_000
"""Pairs of equal lines of two files; more take too long to be compared."""
_LONGEST_LINE = 300
_LONGEST_NAME = 200
_CONTEXT = 2
_CHUNK = 1 << 20


class _File(NamedTuple):
    path: str
    size: int


def compare(before: Path | None, after: Path, against: int | None, room: int) -> Diff:
    """Return how one kept submission differs from another.

    Args:
        before: the directory of the earlier one; None for the first one.
        after: the directory of the later one.
        against: the earlier attempt's number.
        room: characters that the diffs of all files may have together.
    """
    old, more_old = _files(str(before)) if before else ({}, False)
    new, more_new = _files(str(after))
    changes = [(name, what) for name in sorted({*old, *new}) if (what := _change(old.get(name), new.get(name)))]
    files = []
    for name, change in changes[:_SHOWN_FILES]:
        text, reason = _text(old.get(name), new.get(name), max(room, 0))
        room -= len(text or "")
        files.append(FileDiff(shortened(valid_unicode(name), _LONGEST_NAME), change, text, reason))
    left_out = [f"{len(changes) - _SHOWN_FILES} more files"] if len(changes) > _SHOWN_FILES else []
    left_out += [f"files beyond the first {_MAX_FILES}"] if more_old or more_new else []
    return Diff(against, tuple(files), " and ".join(left_out))


@lru_cache(maxsize=64)
def _files(directory: str) -> tuple[dict[str, _File], bool]:
    """Return the plain files below a directory by their names, and whether there are more; no link is followed.

    It is kept for the comparison with the next one: copies are stored under their hash, and never change.
    """
    files: dict[str, _File] = {}
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(os.path.join(directory, below)) as scan:  # noqa: PTH118 - paths as text are much quicker
            entries = sorted(scan, key=lambda entry: entry.name)
        for entry in entries:
            name = f"{below}/{entry.name}" if below else entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append(name)
            elif entry.is_file(follow_symlinks=False):
                if len(files) == _MAX_FILES:
                    return files, True
                files[name] = _File(entry.path, entry.stat(follow_symlinks=False).st_size)
    return files, False


def _change(old: _File | None, new: _File | None) -> FileChange | None:
    """Return what became of a file; None if nothing did."""
    if old is None:
        return "added"
    if new is None:
        return "removed"
    return None if _same(old, new) else "changed"


def _same(old: _File, new: _File) -> bool:
    if old.size != new.size or old.size > _MAX_COMPARED:
        return old.size == new.size
    if old.size <= _MAX_TEXT:
        return _content(old) == _content(new)
    with _open(old) as first, _open(new) as second:
        while chunk := first.read(_CHUNK):
            if chunk != second.read(_CHUNK):
                return False
    return True


def _open(file: _File) -> BinaryIO:
    return os.fdopen(os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


@lru_cache(maxsize=128)
def _content(file: _File) -> bytes:
    with _open(file) as stream:
        return stream.read(_MAX_TEXT)


def _text(old: _File | None, new: _File | None, room: int) -> tuple[str | None, str]:
    """Return the diff of a file, or why it is not shown."""
    lines: list[list[str]] = []
    for file in (old, new):
        text: str | None = ""
        if file is not None:
            if file.size > _MAX_TEXT:
                return None, f"too long to be shown: {file.size} bytes"
            text = _decoded(file)
            if text is None:
                return None, f"binary, {file.size} bytes"
        lines.append([line[:_LONGEST_LINE] for line in (text or "").splitlines()])
    if _pairs(*lines) > _MAX_PAIRS:
        return None, "too many equal lines to be compared"
    if not room:
        return None, "left out: the report has no more room"
    return _bounded(_diff(*lines), room), ""


def _decoded(file: _File) -> str | None:
    content = _content(file)
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


def _pairs(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many pairs of equal lines there are, which the time of a comparison grows with."""
    counts = Counter(old)
    return sum(counts[line] for line in new)


def _diff(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    lines = difflib.unified_diff(old, new, n=_CONTEXT, lineterm="")
    return (line for number, line in enumerate(lines) if number > 1)  # without the names


def _bounded(lines: Iterator[str], room: int) -> str:
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return "\n".join([*kept, "[...]"])
        kept.append(line)
    return "\n".join(kept)
