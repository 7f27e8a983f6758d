"""Files: their checksums, and copies that share blocks with the original."""

from __future__ import annotations

import fcntl
import hashlib
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["clone", "sha256_of"]

_FICLONE = 0x40049409  # of <linux/fs.h>


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def clone(source: BinaryIO, target: BinaryIO) -> bool:
    """Make ``target`` share the blocks of ``source``, on file systems that can (btrfs, XFS); tell whether it did."""
    try:
        fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
    except OSError:
        return False
    return True
