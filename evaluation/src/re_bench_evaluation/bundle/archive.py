"""Unpacking a bundle of a stranger: nothing is written but plain files of the manifest, below one new directory.

No name, size or link of the archive is believed: paths lead nowhere outside, members are plain files that the manifest
lists, each once, and all together are bounded before anything is written. Links are made last, so that no file is
written through one, and lead nowhere outside of their submission.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tarfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from pydantic import ValidationError

from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import temporary_directory
from re_bench.scoring.staging import stays_inside
from re_bench_evaluation.bundle.contents import MAX_TEXT_MIB, in_submission, submission_of
from re_bench_evaluation.bundle.manifest import FILE, Manifest, read_destination, read_path

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_MANIFEST = 64 << 20
_MAX_HEADER = 1 << 20
"""The most that is read at once: tar has headers of any length, which are read into memory as a whole."""
_CHUNK = 1 << 20
_PER_FILE = 16 << 10
"""Bytes of headers and padding that a small file may take."""


class DamagedBundleError(ReBenchError):
    """The archive ends too early or cannot be decompressed."""


@dataclass(frozen=True)
class ArchiveLimits:
    """How large a bundle may be."""

    mib: int = 16 << 10
    """All files together, unpacked."""
    files: int = 200_000
    """Files, directories and links."""


@dataclass
class Unpacked:
    """A bundle on the disk."""

    directory: Path
    """The evaluation's directory, without what is not in bundles."""
    manifest: Manifest
    problems: list[str] = field(default_factory=list)
    """Files that are missing, or are not what the manifest says."""


@contextmanager
def open_bundle(file: Path, limits: ArchiveLimits | None = None) -> Iterator[Unpacked]:
    """Unpack a bundle into a temporary directory for the block.

    Raises:
        UsageError: if it is no bundle, too large, or holds what no bundle of ours has.
        DamagedBundleError: if it ends too early or cannot be decompressed.
    """
    with temporary_directory("re-bench-bundle-") as scratch:
        yield unpack(file, scratch / "evaluation", limits or ArchiveLimits())


def unpack(file: Path, target: Path, limits: ArchiveLimits) -> Unpacked:
    """Unpack a bundle into the new directory ``target``; errors as of :func:`open_bundle`."""
    try:
        with file.open("rb") as packed, gzip.GzipFile(fileobj=packed) as plain:
            stream = _Bounded(plain, (limits.mib << 20) + limits.files * _PER_FILE + _MAX_MANIFEST)
            with tarfile.open(fileobj=stream, mode="r:", errors="strict") as archive:  # type: ignore[call-overload]
                unpacked = _Unpacker(archive, target, limits).unpack()
            while stream.read(_CHUNK):  # to the checksum of gzip at its end
                pass
            return unpacked
    except UsageError as error:
        raise UsageError(f"{file}: it was refused: {error}") from None
    except (tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile, UnicodeError, RecursionError) as error:
        raise DamagedBundleError(f"{file}: it is damaged, or no bundle: {error}") from None
    except OSError as error:
        raise UsageError(f"{file}: it cannot be unpacked: {error.strerror or error}") from None


class _Bounded:
    """The decompressed archive, read once from its beginning to its end, and no more of it than may be in it."""

    def __init__(self, stream: gzip.GzipFile, size: int) -> None:
        self._stream, self._size = stream, size
        self._end, self._last, self._back = 0, b"", False
        """How far it was read, the last byte of that, and whether that byte is to be read again, as tarfile does."""

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _MAX_HEADER:
            raise UsageError(f"it has a header of {size} bytes")
        if self._end + size > self._size:
            raise UsageError("it holds more than it may; allow more with --max-mib")
        again = self._last if self._back and size else b""
        data = self._stream.read(size - len(again))
        self._end += len(data)
        self._last, self._back = data[-1:] or self._last, self._back and not size
        return again + data

    def seek(self, position: int) -> int:
        if position < self._end - 1:
            raise UsageError("its parts are out of order")
        while self._end < position and self.read(min(_CHUNK, position - self._end)):
            pass
        self._back = position == self._end - 1
        return self.tell()

    def tell(self) -> int:
        return self._end - self._back


class _Unpacker:
    def __init__(self, archive: tarfile.TarFile, target: Path, limits: ArchiveLimits) -> None:
        self._archive, self._target, self._limits = archive, target, limits

    def unpack(self) -> Unpacked:
        members = iter(self._archive)
        first = next(members, None)
        if first is None or first.name != FILE or first.size > _MAX_MANIFEST:
            raise UsageError(f"it does not begin with a {FILE} of a bundle")
        manifest = _manifest(b"".join(self._chunks(first)))
        self._check(manifest)
        self._target.mkdir(mode=0o700)
        unpacked, missing = Unpacked(self._target, manifest), dict(manifest.files)
        for member in members:
            entry = missing.pop(member.name, None)
            if entry is None or entry.bytes != member.size:
                raise UsageError(f"it holds {member.name[:200]!r}, not as its manifest says, or twice")
            if self._write(member, executable=entry.executable) != entry.sha256:
                unpacked.problems.append(f"{member.name}: its SHA-256 is not the one of the manifest")
        unpacked.problems += [f"{name}: it is missing" for name in missing]
        self._make_directories_and_links(manifest)
        return unpacked

    def _check(self, manifest: Manifest) -> None:
        """Raise UsageError unless everything that the manifest names may be written."""
        size = sum(entry.bytes for entry in manifest.files.values())
        count = len(manifest.files) + len(manifest.directories) + len(manifest.links)
        if size > self._limits.mib << 20 or count > self._limits.files:
            raise UsageError(
                f"it holds {count} files of {size >> 20} MiB, and may hold {self._limits.files} of {self._limits.mib} "
                "MiB; allow more with --max-mib and --max-files"
            )
        if size > shutil.disk_usage(self._target.parent).free:
            raise UsageError(f"its files are {size >> 20} MiB, and {self._target.parent} has less space")
        files = {read_path(name): entry.bytes for name, entry in manifest.files.items()}
        if any(size > MAX_TEXT_MIB << 20 and not in_submission(path) for path, size in files.items()):
            raise UsageError(f"it has a log of more than {MAX_TEXT_MIB} MiB")
        links = {read_path(name): read_destination(target) for name, target in manifest.links.items()}
        empty = {read_path(name) for name in manifest.directories}
        leaves = files.keys() | links.keys()
        parents = {parent for path in leaves | empty for parent in path.parents}
        if files.keys() & links.keys() or leaves & (parents | empty):
            raise UsageError("it has two things of one name")
        for path, destination in links.items():
            inside = path.relative_to(submission_of(path)) if in_submission(path) else None
            if inside is None or not inside.parts or not stays_inside(inside.parent, PurePosixPath(destination)):
                raise UsageError(f"the link {str(path)[:200]!r} leads out of its submission")

    def _write(self, member: tarfile.TarInfo, *, executable: bool) -> str:
        """Write a file and return its SHA-256."""
        path = self._target / read_path(member.name)
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        content = hashlib.sha256()
        with path.open("xb") as file:
            for chunk in self._chunks(member):
                content.update(chunk)
                file.write(chunk)
        path.chmod(0o755 if executable else 0o644)
        return content.hexdigest()

    def _chunks(self, member: tarfile.TarInfo) -> Iterator[bytes]:
        reader = _reader(self._archive, member)
        while chunk := reader.read(_CHUNK):
            yield chunk

    def _make_directories_and_links(self, manifest: Manifest) -> None:
        for name in manifest.directories:
            (self._target / read_path(name)).mkdir(mode=0o755, parents=True, exist_ok=True)
        for name, destination in manifest.links.items():
            path = self._target / read_path(name)
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            path.symlink_to(read_destination(destination))


def _manifest(text: bytes) -> Manifest:
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))[:200] or "the file"
        raise UsageError(f"its {FILE} is damaged, or of another version: {where}: {fault['msg']}") from None


def _reader(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    reader = archive.extractfile(member) if member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) else None
    if reader is None or member.sparse is not None:
        raise UsageError(f"{member.name[:200]!r} is no plain file")
    return reader
