"""Files of JSON values, one a line, that survive a kill of the process that appends to them.

Each append is one write to the system. A line that a kill left unfinished is skipped by readers, and ended by the next
append. There is no fsync: what is written survives the process, not a crash of the machine.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def dumps(value: object) -> str:
    """Return a value as one line of JSON, without its line end."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def append(path: Path, *values: object) -> int:
    """Append values to a file, which is made if it is missing; return its size in bytes afterwards."""
    with path.open("a+b") as file:
        append_lines(file.fileno(), map(dumps, values))
        return os.fstat(file.fileno()).st_size


def append_lines(file: int, lines: Iterable[str]) -> None:
    """Append lines to a descriptor that was opened for reading and appending."""
    size = os.fstat(file).st_size
    unfinished = size and os.pread(file, 1, size - 1) != b"\n"
    text = ("\n" if unfinished else "") + "".join(f"{line}\n" for line in lines)
    data = memoryview(text.encode("utf-8", "backslashreplace"))
    while data:
        data = data[os.write(file, data) :]


def read(path: Path) -> list[Any]:
    """Return the values of a file.

    Raises:
        OSError: if it cannot be read.
    """
    values = []
    for line in path.read_bytes().split(b"\n"):
        try:
            values.append(json.loads(line))
        except ValueError:
            continue
    return values
