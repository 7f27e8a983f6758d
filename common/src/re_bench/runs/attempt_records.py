"""What a scorer recorded of each attempt, such as its gateway's log, kept beside the attempt log."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import UsageError
from re_bench.sandbox import resource_usage

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES = 512 << 20
"""What all records beside one attempt log may take on disk; the oldest go first."""


class IncomingRecords:
    """The records of an attempt that has no number yet."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def keep(self, attempt: int) -> None:
        """Keep them under an attempt's number, if there are any."""
        if any(self.directory.iterdir()):
            self.directory.rename(self.directory.with_name(str(attempt)))


class AttemptRecords:
    """The directory ``LOG.records`` beside an attempt log, with one directory for each attempt, named by its number.

    Only its owner can look into it. An attempt whose scorer records nothing has no directory.
    """

    def __init__(self, log: Path, max_bytes: int = MAX_BYTES) -> None:
        self.directory = log.with_name(f"{log.name}.records")
        self._max_bytes = max_bytes

    @contextmanager
    def incoming(self) -> Iterator[IncomingRecords]:
        """Make a directory for the block to fill; what is not kept by its end is removed, and then the oldest.

        Raises:
            UsageError: if it cannot be made.
        """
        try:
            self.directory.mkdir(mode=0o700, exist_ok=True)
            directory = Path(tempfile.mkdtemp(prefix=".incoming-", dir=self.directory))
        except OSError as error:
            raise UsageError(f"{self.directory}: records cannot be kept there: {error.strerror}") from None
        try:
            yield IncomingRecords(directory)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            self._trim()

    def _trim(self) -> None:
        """Remove the records of the oldest attempts until all others are within the bound."""
        left = self._max_bytes
        numbers = sorted((int(path.name) for path in self.directory.glob("*") if path.name.isdecimal()), reverse=True)
        for directory in (self.directory / str(number) for number in numbers):
            left -= resource_usage.disk([directory])
            if left < 0:
                shutil.rmtree(directory)
        with suppress(OSError):  # not empty
            self.directory.rmdir()
