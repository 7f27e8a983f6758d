"""The whole output of scripts, in files of the workspace; those of the last scripts are kept.

Scripts can put links where these files are to be, so no link is followed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING, BinaryIO

from mlab_agent.truncate import truncated_file
from mlab_agent.workspaces.files import AGENT_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mlab_agent.workspaces.safe_fs import SafeDirectory

__all__ = ["KEPT_OUTPUTS", "OUTPUT_DIRECTORY", "ScriptOutputs"]

OUTPUT_DIRECTORY = f"{AGENT_DIRECTORY}/outputs"
KEPT_OUTPUTS = 20


class ScriptOutputs:
    """The directory with the outputs, which is made when it is needed."""

    def __init__(self, workspace: SafeDirectory) -> None:
        self._workspace = workspace
        self._number = 0

    @contextlib.contextmanager
    def open(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """Open files for stdout and stderr of the next script.

        Raises:
            OSError: if the directory is no directory of the workspace.
        """
        with self._workspace.parent(f"{OUTPUT_DIRECTORY}/.", make=True) as (directory, _last):
            with os.scandir(directory) as entries:
                files = [(int(stem), entry.name) for entry in entries if (stem := entry.name.split(".")[0]).isdecimal()]
            numbers = sorted({number for number, _name in files})
            self._number = max(numbers, default=0) + 1
            for number, name in files:
                if number in numbers[: 1 - KEPT_OUTPUTS]:
                    _unlink(name, directory)
            with self._new("stdout", directory) as stdout, self._new("stderr", directory) as stderr:
                yield stdout, stderr

    def collect(self, streams: tuple[BinaryIO, BinaryIO], limit: int) -> tuple[str, str, str | None]:
        """Join both outputs in one file; return stdout, stderr, and the path of that file if one was truncated.

        They are read from the open files: a script may have removed the names.

        Args:
            streams: as :meth:`open` yielded them.
            limit: bytes of each that are returned.

        Raises:
            OSError: if the directory is no directory of the workspace any more.
        """
        texts, longest = [], 0
        with (
            self._workspace.parent(f"{OUTPUT_DIRECTORY}/.", make=True) as (directory, _last),
            self._new("txt", directory) as joined,
        ):
            for name, stream in zip(("stdout", "stderr"), streams, strict=True):
                stream.seek(0)
                joined.write(f"=== {name} ===\n".encode())
                shutil.copyfileobj(stream, joined)
                joined.write(b"\n")
                file = stream.fileno()
                size = os.fstat(file).st_size
                texts.append(truncated_file(size, limit, lambda at, count, file=file: os.pread(file, count, at)))  # type: ignore[misc]
                longest = max(longest, size)
                _unlink(f"{self._number}.{name}", directory)
        return texts[0], texts[1], f"{OUTPUT_DIRECTORY}/{self._number}.txt" if longest > limit else None

    def _new(self, suffix: str, directory: int) -> BinaryIO:
        name = f"{self._number}.{suffix}"
        _unlink(name, directory)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        return open(os.open(name, flags, 0o644, dir_fd=directory), "a+b")  # noqa: PTH123 - the caller closes it


def _unlink(name: str, directory: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
