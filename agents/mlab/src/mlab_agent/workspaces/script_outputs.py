"""The files of the workspace that have the whole output of the last scripts."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from typing import TYPE_CHECKING, BinaryIO

from mlab_agent.truncate import truncated_file
from mlab_agent.workspaces.files import AGENT_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mlab_agent.workspaces.safe_fs import SafeDirectory

OUTPUT_DIRECTORY = f"{AGENT_DIRECTORY}/outputs"
KEPT_OUTPUTS = 20
_NUMBER = re.compile(r"([1-9][0-9]{0,8})\.")


class ScriptOutputs:
    """The directory with the whole output of the last scripts, which is made when it is needed.

    Scripts can put anything where these files are to be: no link is followed, and obstacles are removed. Where that
    does not work, the output is not kept.
    """

    def __init__(self, workspace: SafeDirectory) -> None:
        self._workspace = workspace
        self._number = 0

    @contextlib.contextmanager
    def open(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """Open files for stdout and stderr of the next script."""
        with contextlib.ExitStack() as stack:
            try:
                directory = stack.enter_context(self._directory())
                self._remove_oldest(directory)
                streams = [stack.enter_context(self._new(suffix, directory)) for suffix in ("stdout", "stderr")]
            except OSError:
                streams = [stack.enter_context(tempfile.TemporaryFile()) for _stream in range(2)]
            yield streams[0], streams[1]

    def collect(self, streams: tuple[BinaryIO, BinaryIO], limit: int) -> tuple[str, str, str | None]:
        """Join both outputs in one file; return stdout, stderr, and the path of that file if one was truncated.

        They are read from the open files: a script may have removed the names.

        Args:
            streams: as :meth:`open` yielded them.
            limit: bytes of each that are returned.
        """
        files = [stream.fileno() for stream in streams]
        sizes = [os.fstat(file).st_size for file in files]
        texts = [
            truncated_file(size, limit, lambda at, count, file=file: os.pread(file, count, at))  # type: ignore[misc]
            for file, size in zip(files, sizes, strict=True)
        ]
        try:
            with self._directory() as directory, self._new("txt", directory) as joined:
                for name, stream in zip(("stdout", "stderr"), streams, strict=True):
                    stream.seek(0)
                    joined.write(f"=== {name} ===\n".encode())
                    shutil.copyfileobj(stream, joined)
                    joined.write(b"\n")
                    _remove(f"{self._number}.{name}", directory)
        except OSError:
            return texts[0], texts[1], None
        return texts[0], texts[1], f"{OUTPUT_DIRECTORY}/{self._number}.txt" if max(sizes) > limit else None

    @contextlib.contextmanager
    def _directory(self) -> Iterator[int]:
        for name in (AGENT_DIRECTORY, OUTPUT_DIRECTORY):
            with contextlib.suppress(FileNotFoundError):
                if not stat.S_ISDIR(self._workspace.stat(name).st_mode):
                    self._workspace.delete(name)
        with self._workspace.parent(f"{OUTPUT_DIRECTORY}/.", make=True) as (directory, _last):
            yield directory

    def _remove_oldest(self, directory: int) -> None:
        """Choose the next number, and remove the files of the oldest ones."""
        with os.scandir(directory) as entries:
            files = [(int(match[1]), entry.name) for entry in entries if (match := _NUMBER.match(entry.name))]
        numbers = sorted({number for number, _name in files})
        self._number = max(numbers, default=0) + 1
        for number, name in files:
            if number in numbers[: 1 - KEPT_OUTPUTS]:
                _remove(name, directory)

    def _new(self, suffix: str, directory: int) -> BinaryIO:
        name = f"{self._number}.{suffix}"
        _remove(name, directory)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        return open(os.open(name, flags, 0o644, dir_fd=directory), "a+b")  # noqa: PTH123 - the caller closes it


def _remove(name: str, directory: int) -> None:
    """Remove a file; a directory in its place goes aside."""
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        aside = f"not-ours-{secrets.token_hex(6)}"
        os.rename(name, aside, src_dir_fd=directory, dst_dir_fd=directory)
