"""The outputs of scripts, whole, in files of the workspace; the newest ones are kept.

Scripts can put links where these files are to be, so that none is followed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from mlab_agent.homes import PRIVATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mlab_agent.homes.beneath import Beneath

__all__ = ["Outputs", "Shown"]

_DIRECTORY = f"{PRIVATE}/outputs"
_KEPT = 20


@dataclass(frozen=True)
class Shown:
    """What is shown of an output."""

    stdout: str
    stderr: str
    whole: str | None
    """The path in the workspace of the file with all of it, if some is not shown."""


class Outputs:
    """The directory with the outputs."""

    def __init__(self, beneath: Beneath) -> None:
        """Describe the directory in a workspace, which is made when it is needed."""
        self._beneath = beneath
        self._number = 0

    @contextlib.contextmanager
    def next(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """Open files for stdout and stderr of the next script.

        Raises:
            OSError: if the directory is no directory of the workspace.
        """
        with self._beneath.parent(f"{_DIRECTORY}/.", make=True) as (directory, _last):
            with os.scandir(directory) as found:
                files = [(int(stem), each.name) for each in found if (stem := each.name.split(".")[0]).isdecimal()]
            numbers = sorted({number for number, _name in files})
            self._number = max(numbers, default=0) + 1
            for number, name in files:
                if number in numbers[: 1 - _KEPT]:
                    _unlink(name, directory)
            with self._new("stdout", directory) as stdout, self._new("stderr", directory) as stderr:
                yield stdout, stderr

    def shown(self, streams: tuple[BinaryIO, BinaryIO], chars: int) -> Shown:
        """Put both together into one file, and return beginning and end of each.

        They are read where they were opened: a script may have removed the files.

        Raises:
            OSError: if the directory is no directory of the workspace any more.
        """
        texts, cut = [], False
        with (
            self._beneath.parent(f"{_DIRECTORY}/.", make=True) as (directory, _last),
            self._new("txt", directory) as whole,
        ):
            for name, stream in zip(("stdout", "stderr"), streams, strict=True):
                stream.seek(0)
                whole.write(f"=== {name} ===\n".encode())
                shutil.copyfileobj(stream, whole)
                whole.write(b"\n")
                text, shortened = _ends(stream, chars)
                texts.append(text)
                cut = cut or shortened
                _unlink(f"{self._number}.{name}", directory)
        return Shown(texts[0], texts[1], f"{_DIRECTORY}/{self._number}.txt" if cut else None)

    def _new(self, name: str, directory: int) -> BinaryIO:
        name = f"{self._number}.{name}"
        _unlink(name, directory)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        return open(os.open(name, flags, 0o644, dir_fd=directory), "a+b")  # noqa: PTH123 - the caller closes it


def _unlink(name: str, directory: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)


def _ends(source: BinaryIO, chars: int) -> tuple[str, bool]:
    """Return the text of a file, its middle left out if it is long, and whether that is so."""
    size = os.fstat(source.fileno()).st_size
    source.seek(0)
    if size <= chars:
        return source.read().decode(errors="replace"), False
    head = source.read(chars // 2)
    source.seek(size - (chars - chars // 2))
    tail = source.read()
    left = size - len(head) - len(tail)
    gap = f"\n[... {left} bytes left out ...]\n"
    return f"{head.decode(errors='replace')}{gap}{tail.decode(errors='replace')}", True
