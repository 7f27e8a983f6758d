"""Show what a script writes while it runs, line by line, from the files that its output goes to."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable

_READ_BYTES = 64 << 10  # at a time; of what comes faster the middle is not shown
_LONGEST_LINE = 2_000
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass
class LiveOutput:
    """Follows stdout and stderr of a script. ``show(stream, line)`` is called with each line."""

    streams: tuple[BinaryIO, BinaryIO]
    show: Callable[[str, str], None]
    _read: list[int] = field(default_factory=lambda: [0, 0])
    _unfinished: list[bytes] = field(default_factory=lambda: [b"", b""])

    def poll(self) -> None:
        """Show the lines that were finished since the last time."""
        for index, name in enumerate(("stdout", "stderr")):
            data = self._new_bytes(index)
            *lines, self._unfinished[index] = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            if len(self._unfinished[index]) > _LONGEST_LINE:
                lines.append(self._unfinished[index])
                self._unfinished[index] = b""
            for line in lines:
                self.show(name, printable(line.decode(errors="replace")))

    def finish(self) -> None:
        """Show the rest, also a last line that has no end."""
        self.poll()
        for index, name in enumerate(("stdout", "stderr")):
            if self._unfinished[index]:
                self.show(name, printable(self._unfinished[index].decode(errors="replace")))
                self._unfinished[index] = b""

    def _new_bytes(self, index: int) -> bytes:
        file = self.streams[index].fileno()
        start, size = self._read[index], os.fstat(file).st_size
        if size < start:  # the script has truncated it
            start = 0
        self._read[index] = size
        skipped = max(size - start - _READ_BYTES, 0)
        data = self._unfinished[index] + os.pread(file, min(size - start, _READ_BYTES // 2), start)
        if size - start > _READ_BYTES // 2:
            note = f"\n[... {skipped} bytes not shown ...]\n".encode() if skipped else b""
            rest = max(start + _READ_BYTES // 2, size - _READ_BYTES // 2)
            data += note + os.pread(file, size - rest, rest)
        return data


def printable(line: str) -> str:
    """Return a line without control characters, by which a script could write to the terminal at will."""
    line = _COLOUR.sub("", line)
    shortened = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
    return "".join(char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in shortened)
