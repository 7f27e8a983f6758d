"""Copies of scored submissions, kept beside the attempt log under their hashes, so that they can be graded again."""

from __future__ import annotations

import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.sandbox import resource_usage
from re_bench.scoring.staging import stage

if TYPE_CHECKING:
    from re_bench.limits import Bounds

_HASH = re.compile(r"[0-9a-f]{64}")


class Store:
    """The directory ``LOG.submissions`` beside an attempt log; only its owner can look into it."""

    def __init__(self, log: Path) -> None:
        self.directory = log.with_name(f"{log.name}.submissions")

    def keep(self, submission: Path, bounds: Bounds | None = None) -> Path:
        """Copy what ``bounds`` include of ``submission`` into the store, unless it is there already; return the copy.

        Raises:
            UsageError: if it is no directory that can be read.
            InvalidSubmissionError: if it is larger than a submission may be.
        """
        self.directory.mkdir(mode=0o700, exist_ok=True)
        incoming = Path(tempfile.mkdtemp(prefix=".incoming-", dir=self.directory))
        try:
            staged = stage(submission, incoming / "copy", bounds)
            copy = self.directory / staged.sha256
            with suppress(OSError):  # it is there already, with the same content
                staged.directory.rename(copy)
            return copy
        finally:
            shutil.rmtree(incoming)

    def trim(self, size: int) -> None:
        """Remove the oldest copies until all together take at most ``size`` bytes on disk."""
        copies = [path for path in self.directory.glob("*") if path.is_dir()]
        for copy in sorted(copies, key=lambda path: path.stat().st_mtime_ns, reverse=True):
            size -= resource_usage.disk([copy])
            if size < 0:
                shutil.rmtree(copy)

    def find(self, sha256: str) -> Path | None:
        """Return the copy with that hash, or None; a log of a stranger may have anything in the hash's place."""
        path = self.directory / sha256
        return path if _HASH.fullmatch(sha256) and path.is_dir() and not path.is_symlink() else None
