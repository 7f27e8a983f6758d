"""The cache of prepared data: directories that are built once and verified when opened.

Most code needs only :class:`CacheEntry`, which describes, builds and opens one directory.
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
"""The directories of the entries that this process has built or opened, in order."""


def cache_directory() -> Path:
    """Return ``$RE_BENCH_CACHE`` or, if unset, :func:`default_cache_directory`; the directory may not exist yet.

    Raises:
        UsageError: if the user has no home directory.
    """
    if chosen := os.environ.get("RE_BENCH_CACHE"):
        with _needs_home("RE_BENCH_CACHE"):
            return Path(chosen).expanduser()
    return default_cache_directory()


def default_cache_directory() -> Path:
    """Return the directory ``re-bench`` in the user's cache directory; it may not exist yet.

    Raises:
        UsageError: if the user has no home directory.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    with _needs_home("RE_BENCH_CACHE"):
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "re-bench"
        return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "re-bench"


def state_directory() -> Path:
    """Return ``re-bench`` in the user's ``$XDG_STATE_HOME`` or ``~/.local/state``, the directory for persistent state.

    Raises:
        UsageError: if the user has no home directory.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    with _needs_home("XDG_STATE_HOME"):
        return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "re-bench"


@contextmanager
def _needs_home(variable: str) -> Iterator[None]:
    """Convert the error for a missing home directory to a UsageError that names the variable to set."""
    try:
        yield
    except RuntimeError:
        raise UsageError(f"this user has no home directory; set {variable} to a writable directory") from None


def cache_key(*parts: object) -> str:
    """Return a key of twelve hex digits for an entry that is built from the JSON values ``parts``."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class CacheEntry:
    """A directory of files that is built once, with a manifest of their checksums.

    The directory appears atomically. If several processes need it, one of them builds it and the others wait. A damaged
    directory is built again.
    """

    directory: Path
    """The directory. Its name must depend on everything from which the files are built; see :func:`cache_key`."""

    title: str
    """The entry's name in messages."""

    files: tuple[str, ...]
    """The files to build. The manifest contains their SHA-256 under ``files``."""

    remedy: str
    """The action for the user if the entry is missing or damaged, such as ``run: re-bench prepare TASK``."""

    checked: tuple[str, ...] | None = None
    """The files whose SHA-256 :meth:`open` verifies; None for all."""

    check: Callable[[Path, Mapping[str, Any]], None] = lambda _directory, _manifest: None
    """A further check, called with the directory and manifest before a new entry appears and when an entry is opened.
    It raises a ReBenchError if the entry is invalid."""

    manifest_name: str = "manifest.json"

    def open(self) -> dict[str, Any]:
        """Verify the files and return the manifest.

        Raises:
            UsageError: if the entry does not exist.
            ReBenchError: if a file or the manifest is damaged, or :attr:`check` fails.
        """
        if not self.directory.is_dir():
            raise UsageError(f"{self.title} is not prepared in {self.directory.parent}; {self.remedy}")
        with report_damage(self.directory, self.remedy):
            manifest: dict[str, Any] = json.loads((self.directory / self.manifest_name).read_text(encoding="utf-8"))
            for name in self.files if self.checked is None else self.checked:
                path, expected = self.directory / name, manifest["files"][name]
                if (actual := sha256_of(path)) != expected:
                    raise ReBenchError(f"{path}: SHA-256 {actual}, but the manifest has {expected}; {self.remedy}")
            self.check(self.directory, manifest)
        _used[self.directory.resolve()] = None
        return manifest

    def prepare(
        self, build: Callable[[Path], Mapping[str, Any]], log: Callable[[str], None] = lambda _line: None
    ) -> dict[str, Any]:
        """Build the entry unless it exists undamaged, and return the manifest.

        Args:
            build: writes :attr:`files` into the given directory and returns the manifest without checksums.
            log: called with the reason if an existing entry is built again.

        Raises:
            UsageError: if the cache is not writable.
            ReBenchError: if :attr:`check` rejects the new entry, which is then removed.
        """
        with file_lock(self.directory.with_name(f".{self.directory.name}.lock")):
            if self.directory.is_dir():
                try:
                    return self.open()
                except ReBenchError as error:
                    log(f"{self.title}: building it again: {error}")
            with new_directory(self.directory) as directory:
                manifest = dict(build(directory))
                manifest["files"] = {name: sha256_of(directory / name) for name in self.files}
                self.check(directory, manifest)
                (directory / self.manifest_name).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
            _used[self.directory.resolve()] = None
            return manifest


@contextmanager
def file_lock(lock: Path) -> Iterator[None]:
    """Lock the file ``lock`` during a ``with`` block; other processes wait. The kernel unlocks it if a process dies.

    On a read-only file system, where no process can write, this does nothing.
    """
    with ExitStack() as stack:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(lock.open("w"))
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise UsageError(
                    f"{lock.parent}: cannot be created ({error.strerror}); set RE_BENCH_CACHE to a writable directory"
                ) from None
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """Yield a temporary directory, which replaces ``target`` after the ``with`` block or is removed after an exception.

    The caller must hold a lock, since two processes that write the same target would conflict.

    Raises:
        UsageError: if the parent directory is not writable.
    """
    for abandoned in target.parent.glob(f".{target.name}-*"):  # left by a process that was killed
        shutil.rmtree(abandoned, ignore_errors=True)
    try:
        filling = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise UsageError(
            f"{target}: missing or damaged, and cannot be created ({error.strerror}); "
            "set RE_BENCH_CACHE to a writable directory"
        ) from None
    try:
        yield filling
        filling.chmod(0o755)
        shutil.rmtree(target, ignore_errors=True)
        filling.rename(target)
    finally:
        shutil.rmtree(filling, ignore_errors=True)


@contextmanager
def report_damage(directory: Path, remedy: str) -> Iterator[None]:
    """Convert errors from reading a prepared directory to a ReBenchError with the remedy."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReBenchError(f"{directory}: damaged ({type(error).__name__}: {error}); {remedy}") from None


HELD_OUT_FROM = frozenset({"datasets", "transformers"})
"""The packages whose modules may be held out; neither torch nor the tasks' tools depend on them.

Submissions can read all other installed packages, so their text cannot be held out. Sandboxes hide these two packages
if they are installed.
"""


def note_prepared(task: str, profile: str, version: int) -> None:
    """Record which cache entries this process used to prepare a task, unless the cache is read-only."""
    cache = cache_directory().resolve()
    entries = [path.relative_to(cache) if path.is_relative_to(cache) else path for path in _used]
    text = json.dumps({"version": version, "entries": sorted(map(str, entries))}) + "\n"
    with suppress(OSError):
        file = _file(task, profile)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def is_prepared(task: str, profile: str, version: int) -> bool:
    """Return whether this version of a task was prepared and the cache entries that it uses still exist."""
    try:
        noted = json.loads(_file(task, profile).read_text(encoding="utf-8"))
        return noted["version"] == version and all((cache_directory() / path).is_dir() for path in noted["entries"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _file(task: str, profile: str) -> Path:
    return cache_directory() / "prepared" / f"{task}-{profile}.json"
