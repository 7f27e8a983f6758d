"""Which files of an evaluation's directory a bundle has: records, logs, traces and kept submissions."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from re_bench.records import (
    AGENT,
    AGENT_LOG,
    ATTEMPTS,
    EVENTS,
    PLAN,
    RUNS,
    SERVER,
    SERVER_LOG,
    SESSION,
    SESSIONS,
    TRACE,
    TRANSCRIPT,
    WAITS,
    EvaluationRecord,
    RunRecord,
)
from re_bench_evaluation.agents import USAGE
from re_bench_evaluation.bundle.manifest import MAX_DEPTH
from re_bench_evaluation.run import TRIES

if TYPE_CHECKING:
    from collections.abc import Collection

Optional = Literal["agent", "operator-logs", "workspaces"]
"""What a bundle has if it is asked for: all files of the agent; the scorer's own logs, which may quote held-out data;
workspaces and what their commands left."""

MAX_TEXT_MIB = 1024
"""The longest log or record: they are read into memory."""
SUBMISSIONS = f"{ATTEMPTS}.submissions"
_KEPT_AT_TOP = {EvaluationRecord.file_name(), PLAN, EVENTS, "scan.jsonl"}
_KEPT_OF_RUN = {(RunRecord.file_name(),), (AGENT_LOG,), (SERVER_LOG,), (WAITS,), (AGENT, TRACE), (AGENT, USAGE)}
_KEPT_OF_SESSION = {ATTEMPTS, SESSION, TRANSCRIPT, "meter.log", "network.jsonl"}
_OF_SESSION: dict[str, Optional] = {
    f"{ATTEMPTS}.records": "operator-logs",
    "scorer.log": "operator-logs",
    "workspace": "workspaces",
    "experiments": "workspaces",
}
_GIVES_ACCESS = "home"
"""In an mlab run's directory and in a session's: what may hold the session's id, by which anybody could use it."""
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass
class Contents:
    """The files of a bundle, as paths relative to the evaluation's directory."""

    files: list[PurePosixPath] = field(default_factory=list)
    directories: list[PurePosixPath] = field(default_factory=list)
    """Directories of submissions that hold nothing."""
    links: dict[PurePosixPath, str] = field(default_factory=dict)
    """Symbolic links of submissions."""
    left_out: dict[str, Counter[str]] = field(default_factory=dict)
    """By reason: ``files`` and ``bytes``."""

    def leave_out(self, reason: str, size: int) -> None:
        """Count a file that is not in the bundle."""
        self.left_out.setdefault(reason, Counter()).update(files=1, bytes=size)


def contents_of(evaluation: Path, optional: Collection[Optional] = ()) -> Contents:
    """Return what of an evaluation's directory goes into a bundle; no symbolic link is followed.

    Raises:
        OSError: if a directory cannot be read.
    """
    contents = Contents()
    _walk(evaluation, PurePosixPath(), optional, contents)
    return contents


def in_submission(path: PurePosixPath) -> bool:
    """Tell whether a path lies in a kept submission."""
    return _session_part(path)[:1] == (SUBMISSIONS,)


def submission_of(path: PurePosixPath) -> PurePosixPath:
    """Return the directory of the kept submission that a path lies in."""
    return PurePosixPath(*path.parts[: len(path.parts) - len(_session_part(path)) + 2])


def _walk(top: Path, path: PurePosixPath, optional: Collection[Optional], contents: Contents) -> None:
    entries = _entries(top, path, contents)
    if not entries and in_submission(path):
        contents.directories.append(path)
    for name, status in entries:
        inner = path / name
        if stat.S_ISDIR(status.st_mode):
            _walk(top, inner, optional, contents)
            continue
        reason = _reason_against(inner, optional)
        if stat.S_ISLNK(status.st_mode) and in_submission(inner) and not reason:
            contents.links[inner] = os.readlink(top / inner)  # noqa: PTH115 - to the letter, as its hash has it
        elif not stat.S_ISREG(status.st_mode):
            contents.leave_out("neither a file nor a link of a submission", 0)
        elif reason:
            contents.leave_out(reason, status.st_size)
        else:
            contents.files.append(inner)


def _entries(top: Path, path: PurePosixPath, contents: Contents) -> list[tuple[str, os.stat_result]]:
    """Return what is in a directory; of one that an agent has made so that nobody can read it, nothing."""
    try:
        if len(path.parts) >= MAX_DEPTH:
            raise OSError(errno.ELOOP, "it lies too deep", str(top / path))  # noqa: TRY301 - as the system's below
        with os.scandir(top / path) as scan:
            entries = sorted(scan, key=lambda entry: os.fsencode(entry.name))
        return [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    except OSError:
        of_agent = _run_part(path)[:1] == (AGENT,) or _session_part(path)[:1] not in {(), (SUBMISSIONS,)}
        if not of_agent:
            raise
        contents.leave_out("directories that cannot be read", 0)
        return []


def _reason_against(path: PurePosixPath, optional: Collection[Optional]) -> str:
    """Return why a file is not in a bundle; nothing if it is."""
    top, of_run, of_session = path.parts[0], _run_part(path), _session_part(path)
    kind = _OF_SESSION.get(of_session[0]) if of_session else None
    if top == RUNS and of_run[:1] == (AGENT,) and of_run[1:2] != (_GIVES_ACCESS,):
        kind = "agent"
    if of_session[:1] == (SUBMISSIONS,):
        whole = len(of_session) > 2 and _HASH.fullmatch(of_session[1])  # noqa: PLR2004 - SUBMISSIONS/HASH/FILE
        return "" if whole else "unfinished copies of submissions"
    kept = path.name in _KEPT_AT_TOP if len(path.parts) == 1 else top == RUNS and of_run in _KEPT_OF_RUN
    if kept or (len(of_session) == 1 and of_session[0] in _KEPT_OF_SESSION) or kind in optional:
        return ""
    return f"left out without --include {kind}" if kind else "no results, such as locks"


def _session_part(path: PurePosixPath) -> tuple[str, ...]:
    """Return the path in the directory of the session, ``server/sessions/SESSION`` of a run; else nothing."""
    parts = _run_part(path)
    return parts[3:] if parts[:2] == (SERVER, SESSIONS) else ()


def _run_part(path: PurePosixPath) -> tuple[str, ...]:
    """Return the path in the run's directory, or in that of an earlier try; nothing outside of runs."""
    parts = path.parts[2:] if path.parts[:1] == (RUNS,) else ()
    return parts[2:] if parts[:1] == (TRIES,) else parts
