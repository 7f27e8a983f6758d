"""The manifest of a bundle, ``manifest.json``, its first file: what is in it, with checksums, and what is not.

A bundle is a tar, compressed with gzip, of plain files alone. Paths are relative to the evaluation's directory; a byte
that is no printable ASCII character, and ``%``, is written as ``%`` and two hex digits. Empty directories and symbolic
links, which submissions may have, stand in the manifest only.
"""

from __future__ import annotations

import os
from pathlib import PurePosixPath
from typing import Annotated, Literal
from urllib.parse import quote, unquote_to_bytes

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from re_bench.errors import UsageError

FILE = "manifest.json"
FORMAT: Literal["re-bench bundle"] = "re-bench bundle"
MAX_DEPTH = 64
_MAX_PATH = 4096
_MAX_NAME = 255
_PLAIN = "".join(chr(code) for code in range(32, 127) if chr(code) != "%")

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Packed(BaseModel):
    """A file of a bundle."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    sha256: Sha256
    bytes: int = Field(ge=0)
    executable: bool = False


class LeftOut(BaseModel):
    """Files of the evaluation's directory that are not in the bundle, for one reason."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    reason: str
    files: int = Field(ge=0)
    bytes: int = Field(ge=0)


class Manifest(BaseModel):
    """The file ``manifest.json`` of a bundle."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    format: Literal["re-bench bundle"] = FORMAT
    v: Literal[1] = 1
    evaluation: str
    created: str
    """When the evaluation began; a bundle of the same files is the same bytes whenever it is made."""
    files: dict[str, Packed]
    directories: tuple[str, ...] = Field(default=(), strict=False)
    """Directories of submissions that hold no file."""
    links: dict[str, str] = Field(default_factory=dict)
    """Symbolic links of submissions, each with where it leads, written as paths are."""
    changed: dict[str, str] = Field(default_factory=dict)
    """Files that are not as they were on the disk, such as one from which a key was taken, and what was changed."""
    left_out: tuple[LeftOut, ...] = Field(default=(), strict=False)
    packed_by: dict[str, str] = Field(default_factory=dict)
    """The versions of what made it."""


def written(path: PurePosixPath | str) -> str:
    """Return a path as bundles write it."""
    return quote(os.fsencode(str(path)), safe=_PLAIN)


def read_path(text: str) -> PurePosixPath:
    """Return the path that a bundle has written.

    Raises:
        UsageError: if it leads out of the directory that it is relative to, or is none that a packer writes.
    """
    raw = unquote_to_bytes(text) if text.isascii() else b""
    parts = raw.split(b"/")
    unsafe = not raw or b"\0" in raw or any(part in (b"", b".", b"..") or len(part) > _MAX_NAME for part in parts)
    path = PurePosixPath(os.fsdecode(raw))
    if unsafe or len(raw) > _MAX_PATH or len(parts) > MAX_DEPTH or written(path) != text:
        raise UsageError(f"it holds the path {text[:200]!r}, which no bundle of ours has")
    return path


def read_destination(text: str) -> str:
    """Return where a symbolic link leads; :func:`re_bench.scoring.staging.stage` leaves out one that leads outside.

    Raises:
        UsageError: if it is none that a packer writes.
    """
    raw = unquote_to_bytes(text) if text.isascii() else b""
    if not raw or b"\0" in raw or len(raw) > _MAX_PATH:
        raise UsageError(f"it holds a link to {text[:200]!r}, which no bundle of ours has")
    return os.fsdecode(raw)
