"""What attempt logs say, kept in a SQLite database, so that they are not all read and checked for every report.

The logs stay the truth: the database holds nothing else, a log is read again when the log or what its times depend on
has another size, time or inode than before, and a database that is missing, damaged or of another version is made anew.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from re_bench.data.cache import cache_directory
from re_bench.records import SESSION
from re_bench.runs.attempts import Attempt, AttemptLog
from re_bench_evaluation.report.text import bounded, shortened, valid_unicode
from re_bench_evaluation.working_time import attempt_times, read_waits, session_periods

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

LONGEST_MESSAGE = 1000
"""Characters of a message that a report has at most."""
_VERSION = 2
"""Of the database; to be raised with every change of what is in it."""
_DETAILS = ("anchors", "hardware", "instance", "model")
_LONGEST_DETAIL = 300
_LARGEST = 1 << 53
_IN_USE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_COLUMNS = (
    "n", "time", "wall_s", "working_s", "seconds", "status", "raw", "reward", "final_raw", "message", "submission",
    "task", "profile", "sandbox", "scorer", "details",
)  # fmt: skip
_TABLES = f"""
    CREATE TABLE logs (id INTEGER PRIMARY KEY, path TEXT UNIQUE, signature TEXT, torn INTEGER, problem TEXT);
    CREATE TABLE attempts (log INTEGER, position INTEGER, {", ".join(_COLUMNS)}, PRIMARY KEY (log, position))
        WITHOUT ROWID;
    PRAGMA user_version = {_VERSION};
"""


@dataclass(frozen=True)
class LogFiles:
    """An attempt log, and what else tells when its attempts were handed in."""

    log: Path
    session: Path | None = None
    """The directory with the session's record."""
    waits: Path | None = None
    """What the agent waited for."""

    def signature(self) -> str:
        """Return what changes when one of the files does."""
        record = self.session / SESSION if self.session else None
        return " ".join(_state(path) for path in (self.log, record, self.waits))


@dataclass(frozen=True)
class IndexedLog:
    """What a log says.

    Of its attempts, ``wall_s`` and ``working_s`` are those of the run; message and details are cut.
    """

    attempts: tuple[Attempt, ...] = ()
    torn: int = 0
    problem: str = ""
    """Why it could not be read."""


class AttemptIndex:
    """The database of the logs below one directory."""

    def __init__(self, source: Path | None, *, rebuild: bool = False) -> None:
        """Choose the database; nothing is opened yet.

        Args:
            source: the directory or log; None for one that is there for the moment, of which nothing is kept.
            rebuild: whether to begin with an empty one.
        """
        self.path: Path | None = None
        if source is not None:
            name = sha256(os.fsencode(source.resolve())).hexdigest()[:16]
            self.path = cache_directory() / "reports" / f"{name}.sqlite"
        self._rebuild = rebuild

    def read(self, logs: Sequence[LogFiles]) -> dict[Path, IndexedLog]:
        """Return what the logs say, by their paths, and note it in the database for the next time.

        Where the database cannot be kept, as in a cache that is not ours to write, the logs are read all the same.
        """
        if self.path is not None:
            for rebuild in (self._rebuild, True):
                try:
                    with closing(_open(self.path, rebuild=rebuild)) as database:
                        return _read(database, logs)
                except OSError:
                    break
                except (sqlite3.Error, ValueError, KeyError) as error:  # the latter of rows that are not ours
                    if getattr(error, "sqlite_errorcode", None) in _IN_USE:
                        break
        with closing(_connect(":memory:")) as database:
            _make_tables(database)
            return _read(database, logs)


def _open(path: Path, *, rebuild: bool) -> sqlite3.Connection:
    """Open a database, made anew if it is of another version.

    Raises:
        OSError: if there can be none.
        sqlite3.Error: if there is none that can be used, such as a damaged one.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if rebuild:
        _remove(path)
    database = _connect(path)
    try:
        if database.execute("PRAGMA user_version").fetchone()[0] not in {0, _VERSION}:
            database.close()
            _remove(path)
            database = _connect(path)
        _make_tables(database)
    except BaseException:
        database.close()
        raise
    return database


def _remove(path: Path) -> None:
    for suffix in ("", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _connect(path: Path | str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=60, isolation_level=None)


def _make_tables(database: sqlite3.Connection) -> None:
    """Make the tables, unless another process has done so meanwhile."""
    database.execute("BEGIN IMMEDIATE")
    if database.execute("PRAGMA user_version").fetchone()[0] == 0:
        for statement in _TABLES.split(";"):
            database.execute(statement)
    database.execute("COMMIT")


def _read(database: sqlite3.Connection, logs: Sequence[LogFiles]) -> dict[Path, IndexedLog]:
    database.execute("PRAGMA synchronous = OFF")  # what a power cut damages is made anew
    database.execute("BEGIN IMMEDIATE")  # so that another process changes nothing between our reads
    known = dict(_all(database, "path, signature", "logs"))
    for path in known.keys() - {_key(files.log) for files in logs}:
        _forget(database, path)
    for files in logs:
        signature = files.signature()  # before the files are read: what is written meanwhile is noticed the next time
        if known.get(_key(files.log)) != signature:
            _store(database, files, signature)
    stored = _stored(database, logs)
    database.execute("COMMIT")
    return stored


def _all(database: sqlite3.Connection, columns: str, table: str) -> Iterable[tuple[Any, ...]]:
    return database.execute(f"SELECT {columns} FROM {table}")  # noqa: S608 - all constants of this module


def _forget(database: sqlite3.Connection, path: bytes) -> None:
    database.execute("DELETE FROM attempts WHERE log = (SELECT id FROM logs WHERE path = ?)", (path,))
    database.execute("DELETE FROM logs WHERE path = ?", (path,))


def _store(database: sqlite3.Connection, files: LogFiles, signature: str) -> None:
    """Read a log and write what it says into the database."""
    attempts, torn, problem = _from_log(files)
    path = _key(files.log)
    _forget(database, path)
    insert = "INSERT INTO logs (path, signature, torn, problem) VALUES (?, ?, ?, ?)"
    number = database.execute(insert, (path, signature, torn, problem)).lastrowid
    marks = ", ".join("?" * (len(_COLUMNS) + 2))
    rows = [(number, position, *_row(attempt)) for position, attempt in enumerate(attempts)]
    database.executemany(f"INSERT INTO attempts VALUES ({marks})", rows)  # noqa: S608 - question marks alone


def _from_log(files: LogFiles) -> tuple[Sequence[Attempt], int, str]:
    try:
        contents = AttemptLog(files.log).read()
    except OSError as error:
        return (), 0, error.strerror or str(error)
    if any(attempt.n > _LARGEST for attempt in contents.attempts):
        return (), 0, f"it has attempts with numbers above {_LARGEST}"
    periods = session_periods(files.session) if files.session else []
    waits = read_waits(files.waits) if files.waits else []
    times = attempt_times(contents.attempts, periods, waits)
    attempts = [
        replace(
            attempt, wall_s=time.wall_s if time else None, working_s=time.working_s if time else None,
            message=shortened(attempt.message, LONGEST_MESSAGE),
        )
        for attempt, time in zip(contents.attempts, times, strict=True)
    ]  # fmt: skip
    return attempts, contents.torn, ""


def _row(attempt: Attempt) -> list[Any]:
    kept = {name: attempt.details[name] for name in _DETAILS if name in attempt.details}
    details = json.dumps(kept, sort_keys=True)
    values = [_value(getattr(attempt, name)) for name in _COLUMNS[1:-1]]
    return [attempt.n, *values, details if len(details) <= _LONGEST_DETAIL else "{}"]


def _value(value: str | float | None) -> str | float | None:
    """Return a value that a database can hold, and sums can: half characters and numbers may be a stranger's."""
    if isinstance(value, str):
        return value if value.isascii() else valid_unicode(value)
    return None if value is None else bounded(value)


def _stored(database: sqlite3.Connection, logs: Sequence[LogFiles]) -> dict[Path, IndexedLog]:
    rows = database.execute(f"SELECT log, {', '.join(_COLUMNS)} FROM attempts ORDER BY log, position")  # noqa: S608 - constants
    attempts = {number: tuple(map(_attempt, group)) for number, group in groupby(rows, key=itemgetter(0))}
    described = {path: rest for path, *rest in _all(database, "path, id, torn, problem", "logs")}
    result = {}
    for files in logs:
        number, torn, problem = described[_key(files.log)]
        result[files.log] = IndexedLog(attempts.get(number, ()), torn, problem)
    return result


def _attempt(row: Sequence[Any]) -> Attempt:
    n, time, wall_s, working_s, seconds, status, raw, reward, final_raw, message, submission = row[1:12]
    task, profile, sandbox, scorer, details = row[12:]
    return Attempt(
        n=n, time=time, wall_s=wall_s, working_s=working_s, seconds=seconds, status=status, raw=raw, reward=reward,
        final_raw=final_raw, message=message, submission=submission, task=task, profile=profile, sandbox=sandbox,
        scorer=scorer, details=_details(details),
    )  # fmt: skip


@lru_cache(maxsize=1000)
def _details(text: str) -> dict[str, Any]:
    """Return details, shared by the many attempts that have the same ones."""
    details: dict[str, Any] = json.loads(text)
    return details


def _key(path: Path) -> bytes:
    return os.fsencode(path)


def _state(path: Path | None) -> str:
    """Return what tells a changed file from an unchanged one."""
    if path is None:
        return "-"
    try:
        status = path.lstat()
    except OSError:
        return "-"
    return f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
