"""The cache of prepared data: where it lies, and directories in it that are made once and checked when opened.

A :class:`CacheEntry` is all that most code needs: it describes a directory, makes it unless it is there, and opens it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.data.files import sha256_of
from re_bench.errors import ReBenchError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_READ_ONLY = {errno.EROFS, errno.EACCES}
_used: dict[Path, None] = {}


def cache_directory() -> Path:
    """Return ``$RE_BENCH_CACHE``, or :func:`default_cache_directory`; it need not exist yet.

    Raises:
        UsageError: if the user has no home directory.
    """
    if chosen := os.environ.get("RE_BENCH_CACHE"):
        with _needs_home("RE_BENCH_CACHE"):
            return Path(chosen).expanduser()
    return default_cache_directory()


def default_cache_directory() -> Path:
    """Return ``re-bench`` in the platform's cache of the user; it need not exist yet.

    Raises:
        UsageError: if the user has no home directory.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    with _needs_home("RE_BENCH_CACHE"):
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "re-bench"
        return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "re-bench"


def state_directory() -> Path:
    """Return ``re-bench`` in the user's directory for state, which is kept: ``$XDG_STATE_HOME``, or ``~/.local/state``.

    Raises:
        UsageError: if the user has no home directory.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    with _needs_home("XDG_STATE_HOME"):
        return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "re-bench"


@contextmanager
def _needs_home(variable: str) -> Iterator[None]:
    """Tell a user without a home directory which environment variable helps."""
    try:
        yield
    except RuntimeError:
        raise UsageError(f"this user has no home directory; set {variable} to a writable directory") from None


def used_entries() -> list[Path]:
    """Return the directories of the entries that this process has made or opened, in that order."""
    return list(_used)


def cache_key(*parts: object) -> str:
    """Return twelve hex digits that differ with ``parts``, which are JSON values: what an entry is made from."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class CacheEntry:
    """A directory of files that is made once, with a manifest that has their checksums.

    Readers see all of it or nothing. Of processes that want to make it, one does and the others wait. What is damaged
    is made again.
    """

    directory: Path
    """Its name must differ with all that the files are made from: see :func:`cache_key`."""

    title: str
    """What messages call it."""

    files: tuple[str, ...]
    """The files that are made. The manifest has their SHA-256 under ``files``."""

    remedy: str
    """What a person should do when it is missing or damaged, as ``run: re-bench prepare TASK``."""

    checked: tuple[str, ...] | None = None
    """Those of the files whose SHA-256 is compared when the entry is opened; all of them if None."""

    check: Callable[[Path, Mapping[str, Any]], None] = lambda _directory, _manifest: None
    """Called with the directory and the manifest, both before an entry is put into place and whenever it is opened;
    raises ReBenchError if they are not as they must be."""

    manifest_name: str = "manifest.json"

    def open(self) -> dict[str, Any]:
        """Return the manifest, after comparing files with their checksums.

        Raises:
            UsageError: if the entry is not there.
            ReBenchError: if a file, or the manifest itself, is not what it must be.
        """
        if not self.directory.is_dir():
            raise UsageError(f"{self.title} is not prepared in {self.directory.parent}; {self.remedy}")
        with undamaged(self.directory, self.remedy):
            manifest: dict[str, Any] = json.loads((self.directory / self.manifest_name).read_text(encoding="utf-8"))
            names = self.files if self.checked is None else self.checked
            _check_files(self.directory, {name: manifest["files"][name] for name in names}, self.remedy)
            self.check(self.directory, manifest)
        _used[self.directory.resolve()] = None
        return manifest

    def prepare(
        self, make: Callable[[Path], Mapping[str, Any]], say: Callable[[str], None] = lambda _line: None
    ) -> dict[str, Any]:
        """Return the manifest, after making the entry unless it is there and undamaged.

        Args:
            make: writes :attr:`files` into the directory that it is given, and returns the manifest, to which the
                checksums of the files are added.
            say: is told, in a line, why an entry that was there is made again.

        Raises:
            UsageError: if nothing can be written there.
            ReBenchError: if what was made is not what it must be; then nothing of it is left.
        """
        with file_lock(self.directory.with_name(f".{self.directory.name}.lock")):
            if self.directory.is_dir():
                try:
                    return self.open()
                except ReBenchError as error:
                    say(f"{self.title}: made again, because of this: {error}")
            with new_directory(self.directory) as directory:
                manifest = dict(make(directory))
                manifest["files"] = {name: sha256_of(directory / name) for name in self.files}
                self.check(directory, manifest)
                (directory / self.manifest_name).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
            _used[self.directory.resolve()] = None
            return manifest


@contextmanager
def file_lock(lock: Path) -> Iterator[None]:
    """Hold the file ``lock``; other processes that ask for it wait. The system frees it when a process dies.

    Where nothing can be written, in a cache that is mounted read-only, there is no need to wait, and nothing is held.
    """
    with ExitStack() as stack:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(lock.open("w"))
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """Give a directory to fill, which becomes ``target`` at the end, or vanishes if the filling fails.

    What was at ``target`` before is removed. Hold a lock: two writers of one target would disturb each other.

    Raises:
        UsageError: if nothing can be written there.
    """
    for abandoned in target.parent.glob(f".{target.name}-*"):  # by a process that was killed
        shutil.rmtree(abandoned, ignore_errors=True)
    try:
        filling = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise UsageError(
            f"{target}: missing or damaged, and cannot be made there ({error.strerror}); set RE_BENCH_CACHE elsewhere"
        ) from None
    try:
        yield filling
        filling.chmod(0o755)
        shutil.rmtree(target, ignore_errors=True)
        filling.rename(target)
    finally:
        shutil.rmtree(filling, ignore_errors=True)


@contextmanager
def undamaged(directory: Path, remedy: str) -> Iterator[None]:
    """Turn what goes wrong in reading a prepared directory into one line that says what to do.

    Raises:
        ReBenchError: for an unreadable file, or a manifest that is not as we write it.
    """
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReBenchError(f"{directory}: damaged ({type(error).__name__}: {error}); {remedy}") from None


def _check_files(directory: Path, checksums: Mapping[str, str], remedy: str) -> None:
    """Compare files of a prepared directory with the SHA-256 that its manifest has for them.

    Raises:
        ReBenchError: if one differs.
    """
    for file, expected in checksums.items():
        if (actual := sha256_of(directory / file)) != expected:
            raise ReBenchError(f"{directory / file}: SHA-256 {actual}, its manifest says {expected}; {remedy}")


HELD_OUT_FROM = frozenset({"datasets", "transformers"})
"""The packages whose modules may be held out: those that neither torch nor a task's own tools bring along.

A submission can read what is installed beside it, so that other packages hold nothing that is unseen. Where these two
are installed, sandboxes do not show them.
"""


def note_prepared(task: str, profile: str, version: int) -> None:
    """Note that this process has prepared a task, by all entries that it has used; not in a cache that is read-only."""
    cache = cache_directory().resolve()
    entries = [path.relative_to(cache) if path.is_relative_to(cache) else path for path in used_entries()]
    text = json.dumps({"version": version, "entries": sorted(map(str, entries))}) + "\n"
    with suppress(OSError):
        file = _file(task, profile)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def is_prepared(task: str, profile: str, version: int) -> bool:
    """Tell whether this version of a task was prepared and all that it used is still there."""
    try:
        noted = json.loads(_file(task, profile).read_text(encoding="utf-8"))
        return noted["version"] == version and all((cache_directory() / path).is_dir() for path in noted["entries"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _file(task: str, profile: str) -> Path:
    return cache_directory() / "prepared" / f"{task}-{profile}.json"
