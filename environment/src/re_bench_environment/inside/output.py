"""The output of a command: its beginning and end are told, and a file keeps all of it if that is too much."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import IO

from re_bench.guest.truncate import HeadTail

__all__ = ["CommandOutput"]

_MIB = 1 << 20
_WHOLE = 16 * _MIB
_FILES = 8


class CommandOutput:
    """Takes in a command's output; past ``keep`` bytes it goes into a file too, up to 16 MiB."""

    def __init__(self, directory: str, number: int, keep: int) -> None:
        """Take in the output of a session's command with this number; files are made in ``directory``."""
        self._kept = HeadTail(keep)
        self._keep = keep
        self._directory, self._number = directory, number
        self._file: IO[bytes] | None = None
        self._written = 0
        self._failed = False

    def add(self, data: bytes) -> None:
        """Take in the next piece."""
        if self._kept.total + len(data) > self._keep:
            if self._file is None and not self._failed:
                self._open()
                self._write(self._kept.begin())
            self._write(data)
        self._kept.add(data)

    def end(self) -> tuple[str, str | None]:
        """Return the text, its middle left out if it is too long, and the path of the file that then holds it."""
        if self._file is None:
            return self._kept.text(), None
        name = self._file.name
        with suppress(OSError):
            self._file.close()
        if self._written < self._kept.total:
            return self._kept.text(f"; the first {self._written} bytes of all are in {name}"), name
        return self._kept.text(f"; all of it is in {name}"), name

    def _open(self) -> None:
        try:
            os.makedirs(self._directory, exist_ok=True)  # noqa: PTH103 - pathlib costs every session memory
            older = sorted((name for name in os.listdir(self._directory) if name[:-4].isdigit()), key=_number)  # noqa: PTH208
            for name in older[: 1 - _FILES]:
                os.unlink(f"{self._directory}/{name}")  # noqa: PTH108
            path = f"{self._directory}/{self._number}.txt"
            with suppress(FileNotFoundError):
                os.unlink(path)  # noqa: PTH108
            self._file = open(path, "xb", buffering=0)  # noqa: PTH123, SIM115 - closed at the end of the command
        except OSError:
            self._failed = True

    def _write(self, data: bytes) -> None:
        if self._file is None or self._failed:
            return
        view = memoryview(data)[: _WHOLE - self._written]
        try:
            while view:
                wrote = self._file.write(view)
                self._written += wrote
                view = view[wrote:]
        except OSError:  # no space is left
            self._failed = True


def _number(name: str) -> int:
    return int(name[:-4])
