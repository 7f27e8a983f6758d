"""The file format of bundles, and how one from a stranger is unpacked.

A bundle is a tar, compressed with gzip, of plain files alone. The first one, ``manifest.json``, lists the others with
their checksums, and says what was left out. Paths are relative to the evaluation's directory; a byte that is no
printable ASCII character, and ``%``, is written as ``%`` and two hex digits. Empty directories and symbolic links,
which submissions may have, are in the manifest only.
"""

from __future__ import annotations

import os
import tarfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal, Self
from urllib.parse import quote, unquote_to_bytes

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from re_bench.data.files import sha256_of
from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import temporary_directory
from re_bench.records import ATTEMPTS, RUNS, SERVER, SESSIONS
from re_bench.task.staging import stays_inside
from re_bench_evaluation.run import TRIES

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = "manifest.json"
MAX_DEPTH = 64
"""How many directories deep a file may lie."""
MAX_MIB = 16 << 10
"""The default limit for all files of a bundle together, unpacked."""
MAX_FILES = 200_000
"""The default limit for files, directories and links."""
SUBMISSIONS = f"{ATTEMPTS}.submissions"
_MAX_MANIFEST = 64 << 20
_MAX_HEADER = 1 << 20
"""The longest header with a long name: tarfile reads it into memory."""
_PLAIN = "".join(chr(code) for code in range(32, 127) if chr(code) != "%")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Packed(_Part):
    """A file of a bundle."""

    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    bytes: int = Field(ge=0)
    executable: bool = False


class LeftOut(_Part):
    """Files of the evaluation's directory that are not in the bundle, for one reason."""

    reason: str
    files: int = Field(ge=0)
    bytes: int = Field(ge=0)


class Manifest(_Part):
    """The file ``manifest.json`` of a bundle."""

    format: Literal["re-bench bundle"] = "re-bench bundle"
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


class DamagedBundleError(ReBenchError):
    """The archive ends too early or cannot be decompressed."""


@dataclass
class Unpacked:
    """A bundle on the disk."""

    directory: Path
    """The evaluation's directory, without what is not in bundles."""
    manifest: Manifest
    problems: list[str] = field(default_factory=list)
    """Files that are missing, or are not what the manifest says."""


@contextmanager
def open_bundle(file: Path, *, max_mib: int = MAX_MIB, max_files: int = MAX_FILES) -> Iterator[Unpacked]:
    """Unpack a bundle into a temporary directory for the block.

    Raises:
        UsageError: if it is no bundle, too large, or holds what no packer writes.
        DamagedBundleError: if it ends too early or cannot be decompressed.
    """
    with temporary_directory("re-bench-bundle-") as scratch:
        try:
            unpacked = _unpack(file, scratch / "evaluation", max_mib << 20, max_files)
        except (UsageError, tarfile.FilterError) as error:
            raise UsageError(f"{file}: it was refused: {error}") from None
        except (tarfile.TarError, zlib.error, EOFError, UnicodeError, RecursionError) as error:
            raise DamagedBundleError(f"{file}: it is damaged, or no bundle: {error}") from None
        except OSError as error:
            raise UsageError(f"{file}: it cannot be unpacked: {error.strerror or error}") from None
        yield unpacked


def written(path: PurePosixPath | str) -> str:
    """Return a path as bundles write it."""
    return quote(os.fsencode(str(path)), safe=_PLAIN)


def read_path(text: str) -> PurePosixPath:
    """Return the path that a bundle has written.

    Raises:
        UsageError: if it leads out of the directory that it is relative to, or is none that a packer writes.
    """
    path = PurePosixPath(os.fsdecode(unquote_to_bytes(text)) if text.isascii() else "")
    outside = path.is_absolute() or ".." in path.parts or "\0" in str(path) or not 0 < len(path.parts) <= MAX_DEPTH
    if outside or written(path) != text:
        raise UsageError(f"it holds the path {text[:200]!r}, which no packer writes")
    return path


def run_part(path: PurePosixPath) -> tuple[str, ...]:
    """Return the path in the run's directory, or in that of an earlier try; nothing outside of runs."""
    parts = path.parts[2:] if path.parts[:1] == (RUNS,) else ()
    return parts[2:] if parts[:1] == (TRIES,) else parts


def session_part(path: PurePosixPath) -> tuple[str, ...]:
    """Return the path in the directory of the session, ``server/sessions/SESSION`` of a run; else nothing."""
    parts = run_part(path)
    return parts[3:] if parts[:2] == (SERVER, SESSIONS) else ()


def in_submission(path: PurePosixPath) -> bool:
    """Tell whether a path lies in a kept submission."""
    return session_part(path)[:1] == (SUBMISSIONS,)


def submission_of(path: PurePosixPath) -> PurePosixPath:
    """Return the directory of the kept submission that a path lies in."""
    return PurePosixPath(*path.parts[: len(path.parts) - len(session_part(path)) + 2])


class _Member(tarfile.TarInfo):
    """The header of a plain file, or one that gives the next file a long name."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        if member.type == tarfile.XHDTYPE and not 0 <= member.size <= _MAX_HEADER:
            raise UsageError(f"it has a header of {member.size} bytes")
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.XHDTYPE):
            raise UsageError(f"{member.name[:200]!r} is no plain file")
        return member


def _unpack(file: Path, target: Path, max_bytes: int, max_files: int) -> Unpacked:
    """Write what the manifest lists, and nothing else; links last, so that no file is written through one."""
    with tarfile.open(file, "r|gz", tarinfo=_Member, errors="strict") as archive:
        members = iter(archive)
        manifest = _manifest(archive, next(members, None))
        _check_size(manifest, max_bytes, max_files)
        links = _links(manifest)
        unpacked, missing = Unpacked(target, manifest), dict(manifest.files)
        target.mkdir(mode=0o700)
        for member in members:
            entry = missing.pop(member.name, None)
            if entry is None or entry.bytes != member.size or member.sparse is not None:
                raise UsageError(f"it holds {member.name[:200]!r}, not as its manifest says, or twice")
            path = read_path(member.name)
            mode = 0o755 if entry.executable else 0o644
            archive.extract(member.replace(name=str(path), mode=mode, mtime=0, deep=False), target, filter="data")
            if sha256_of(target / path) != entry.sha256:
                unpacked.problems.append(f"{written(path)}: its SHA-256 is not the one of the manifest")
    unpacked.problems += [f"{name}: it is missing" for name in missing]
    for name in manifest.directories:
        (target / read_path(name)).mkdir(parents=True, exist_ok=True)
    for link, destination in links.items():
        (target / link).parent.mkdir(parents=True, exist_ok=True)
        (target / link).symlink_to(destination)
    return unpacked


def _manifest(archive: tarfile.TarFile, first: tarfile.TarInfo | None) -> Manifest:
    if first is None or first.name != FILE or first.sparse is not None or not 0 <= first.size <= _MAX_MANIFEST:
        raise UsageError(f"it does not begin with a {FILE} of a bundle")
    opened = archive.extractfile(first)
    assert opened is not None
    try:
        return Manifest.model_validate_json(opened.read())
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))[:200] or "the file"
        raise UsageError(f"its {FILE} is damaged, or of another version: {where}: {fault['msg']}") from None


def _check_size(manifest: Manifest, max_bytes: int, max_files: int) -> None:
    size = sum(entry.bytes for entry in manifest.files.values())
    count = len(manifest.files) + len(manifest.directories) + len(manifest.links)
    if size > max_bytes or count > max_files:
        raise UsageError(
            f"it holds {count} files of {size >> 20} MiB, and may hold {max_files} of {max_bytes >> 20} MiB; "
            "allow more with --max-mib and --max-files"
        )


def _links(manifest: Manifest) -> dict[PurePosixPath, str]:
    """Return the links to make, each of which stays inside its submission; nothing is to be written through one.

    Raises:
        UsageError: if one does not, or a path of the manifest is none that a packer writes.
    """
    links = {read_path(name): os.fsdecode(unquote_to_bytes(target)) for name, target in manifest.links.items()}
    others = {read_path(name) for name in (*manifest.files, *manifest.directories)}
    parents = {parent for path in others | links.keys() for parent in path.parents}
    if links.keys() & (others | parents):
        raise UsageError("it has two things of one name")
    for path, destination in links.items():
        inside = path.relative_to(submission_of(path)) if in_submission(path) else None
        odd = not destination or "\0" in destination
        if odd or inside is None or not inside.parts or not stays_inside(inside.parent, PurePosixPath(destination)):
            raise UsageError(f"the link {str(path)[:200]!r} leads out of its submission")
    return links
