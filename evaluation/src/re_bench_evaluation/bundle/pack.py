"""Packing an evaluation's directory into a bundle: records, logs, traces and kept submissions, without keys."""

from __future__ import annotations

import gzip
import os
import re
import stat
import tarfile
from collections import Counter
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from re_bench.data.files import sha256_of
from re_bench.data.jsonl import read_plain
from re_bench.data.redaction import forms, redacted, redacted_value
from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import temporary_directory
from re_bench.records import (
    AGENT,
    AGENT_LOG,
    ATTEMPTS,
    EVENTS,
    PLAN,
    RUNS,
    SERVER_LOG,
    SESSION,
    TRACE,
    TRANSCRIPT,
    WAITS,
    EvaluationRecord,
    RunRecord,
    run_directories,
)
from re_bench.runs.attempts import AttemptLog, encoded
from re_bench_evaluation.agents import USAGE
from re_bench_evaluation.bundle.archive import (
    FILE,
    MAX_DEPTH,
    MAX_TEXT_MIB,
    SUBMISSIONS,
    LeftOut,
    Manifest,
    Packed,
    in_submission,
    read_path,
    run_part,
    session_part,
    submission_of,
    written,
)
from re_bench_evaluation.run import TRIES
from re_bench_evaluation.session import TOKEN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

Optional = Literal["agent", "operator-logs", "workspaces"]
"""What a bundle has if it is asked for: all files of the agent; the scorer's own logs, which may quote held-out data;
workspaces and what their commands left."""

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
_WITHHELD = "withheld"
"""Of an attempt's details: what the scorer keeps from the agent because it may quote held-out data."""
_HASH = re.compile(r"[0-9a-f]{64}")
_SECRET_NAME = re.compile(r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_NAMES_VARIABLES = re.compile(r"(?:^|_)(?:variables?|secrets?)$")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHORTEST = 8
"""A shorter value that only its name makes a secret occurs by chance."""
_LONGEST_TOKEN = 1 << 10
_CHUNK = 1 << 20


@dataclass(frozen=True)
class PackedBundle:
    """A bundle that was written."""

    path: Path
    sha256: str
    manifest: Manifest
    unfinished: tuple[str, ...]
    """Runs that had not ended."""
    unknown_variables: tuple[str, ...]
    """Variables with keys that the plan names and that are not set here, so that their values were not looked for."""

    @property
    def bytes(self) -> int:
        """The size of all files in it."""
        return sum(file.bytes for file in self.manifest.files.values())


@dataclass
class _Contents:
    """The files of a bundle, as paths relative to the evaluation's directory."""

    files: list[PurePosixPath] = field(default_factory=list)
    directories: list[PurePosixPath] = field(default_factory=list)
    """Directories of submissions that hold nothing."""
    links: dict[PurePosixPath, str] = field(default_factory=dict)
    """Symbolic links of submissions."""
    left_out: dict[str, Counter[str]] = field(default_factory=dict)
    """By reason: ``files`` and ``bytes``."""

    def leave_out(self, reason: str, size: int = 0) -> None:
        self.left_out.setdefault(reason, Counter()).update(files=1, bytes=size)


def pack(evaluation: Path, out: Path, *, optional: Collection[Optional] = (), max_mib: int = 4096) -> PackedBundle:
    """Write the bundle of an evaluation; the same files give the same bytes.

    Keys are taken out of logs and records; a submission that holds one is left out.

    Args:
        evaluation: its directory.
        out: the file to write; it must not exist.
        optional: what else goes into it.
        max_mib: the most that its files may be together, in MiB.

    Raises:
        UsageError: if it is no evaluation, too large, or the file cannot be written.
        ReBenchError: if a record is damaged, or a file changed while it was packed.
    """
    if not (evaluation / EvaluationRecord.file_name()).is_file():
        raise UsageError(f"{evaluation}: there is no {EvaluationRecord.file_name()}; give an evaluation's directory")
    record = EvaluationRecord.load(evaluation)
    runs = [RunRecord.load(directory) for directory in run_directories(evaluation)]
    variables = set(_variables(record.plan, named=False))
    try:
        secrets = _secrets(evaluation, record.plan, variables)
        with temporary_directory("re-bench-bundle-") as scratch:
            packer = _Packer(evaluation, scratch, secrets)
            manifest = packer.manifest(record, _contents(evaluation, optional), max_mib)
            packer.write(manifest, out)
    except OSError as error:
        hint = "; remove it, or give another --out FILE" if isinstance(error, FileExistsError) else ""
        raise UsageError(f"{error.filename or out}: the bundle cannot be made: {error.strerror}{hint}") from None
    unfinished = tuple(run.run for run in runs if run.state in ("waiting", "running"))
    unknown = tuple(sorted(name for name in variables if name not in os.environ))
    return PackedBundle(out, sha256_of(out), manifest, unfinished, unknown)


class _Packer:
    def __init__(self, evaluation: Path, scratch: Path, secrets: Sequence[str]) -> None:
        self._top, self._scratch, self._secrets = evaluation, scratch, secrets
        self._instead: dict[PurePosixPath, Path] = {}
        """By path: the file that is packed in the place of one from which something was taken."""
        self._changed: dict[str, str] = {}

    def manifest(self, record: EvaluationRecord, contents: _Contents, max_mib: int) -> Manifest:
        self._leave_out_secret_submissions(contents)
        sizes = {path: (self._top / path).lstat().st_size for path in contents.files}
        if sum(sizes.values()) > max_mib << 20:
            submissions = sum(size for path, size in sizes.items() if in_submission(path))
            raise UsageError(
                f"the bundle's files are {sum(sizes.values()) >> 20} MiB together, {submissions >> 20} MiB of them "
                f"submissions, and may be {max_mib} MiB; allow more with --max-mib"
            )
        return Manifest(
            evaluation=record.name,
            created=record.created,
            files={written(path): self._packed(path) for path in contents.files},
            directories=tuple(map(written, contents.directories)),
            links={written(path): written(destination) for path, destination in contents.links.items()},
            changed=self._changed,
            left_out=tuple(LeftOut(reason=reason, **count) for reason, count in sorted(contents.left_out.items())),
            packed_by={"re-bench-common": version("re-bench-common")},
        )

    def write(self, manifest: Manifest, out: Path) -> None:
        """Write the archive: a tar of plain files with no owner and no time."""
        head = manifest.model_dump_json(indent=1).encode() + b"\n"
        with out.open("xb") as file:
            try:
                with (
                    gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,
                    tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
                ):
                    archive.addfile(_member(FILE, len(head)), BytesIO(head))
                    for name, entry in manifest.files.items():
                        self._add(archive, name, entry)
            except BaseException:
                out.unlink()
                raise

    def _add(self, archive: tarfile.TarFile, name: str, entry: Packed) -> None:
        path = self._instead.get(read_path(name)) or self._top / read_path(name)
        try:
            with path.open("rb") as file:
                archive.addfile(_member(name, entry.bytes, executable=entry.executable), file)
            changed = sha256_of(path) != entry.sha256
        except OSError:  # such as tarfile's, of a file that is shorter now
            changed = not path.is_file() or path.stat().st_size != entry.bytes
            if not changed:
                raise
        if changed:
            raise ReBenchError(f"{name}: it changed while it was packed; pack when the evaluation has ended")

    def _leave_out_secret_submissions(self, contents: _Contents) -> None:
        kept = [path for path in contents.files if in_submission(path)]
        holding = {submission_of(path) for path in kept if _holds_one(self._top / path, self._secrets)}
        for path in [path for path in kept if submission_of(path) in holding]:
            contents.leave_out("submissions that hold a key", (self._top / path).lstat().st_size)
            contents.files.remove(path)
        contents.links = {path: target for path, target in contents.links.items() if submission_of(path) not in holding}
        contents.directories = [path for path in contents.directories if submission_of(path) not in holding]

    def _packed(self, path: PurePosixPath) -> Packed:
        source = self._top / path if in_submission(path) else self._without_secrets(path)
        status = source.stat()
        executable = in_submission(path) and bool(status.st_mode & 0o100)
        return Packed(sha256=sha256_of(source), bytes=status.st_size, executable=executable)

    def _without_secrets(self, path: PurePosixPath) -> Path:
        """Return the file, or one in its place from which keys were taken."""
        source = self._top / path
        if source.stat().st_size > MAX_TEXT_MIB << 20:
            raise UsageError(f"{source}: it is longer than {MAX_TEXT_MIB} MiB, so that no key can be taken out of it")
        before = source.read_bytes()
        if path.name == ATTEMPTS:
            after, change = self._attempts(source), "keys, torn lines and what was withheld from the agent taken out"
        else:
            text = before.decode("utf-8", "surrogateescape")
            after = redacted(text, self._secrets, similar=True).encode("utf-8", "surrogateescape")
            change = "keys taken out"
        if after == before:
            return source
        instead = self._scratch / str(len(self._instead))
        instead.write_bytes(after)
        self._instead[path] = instead
        self._changed[written(path)] = change
        return instead

    def _attempts(self, log: Path) -> bytes:
        """Return the whole lines of an attempt log, encoded again where something has to be taken out."""
        lines = []
        for attempt in AttemptLog(log).read().attempts:
            told = {key: value for key, value in attempt.details.items() if key != _WITHHELD}
            details = redacted_value(told, self._secrets, similar=True)
            clean = replace(attempt, details=details, message=redacted(attempt.message, self._secrets, similar=True))
            lines.append(encoded(clean) + b"\n")
        return b"".join(lines)


def _member(name: str, size: int, *, executable: bool = False) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o755 if executable else 0o644
    return member


def _contents(evaluation: Path, optional: Collection[Optional]) -> _Contents:
    """Return what of an evaluation's directory goes into a bundle; no symbolic link is followed."""
    contents = _Contents()

    def leave_out(error: OSError) -> None:
        """Leave out a directory that an agent has made so that it cannot be read; none of the others."""
        path = PurePosixPath(os.path.relpath(error.filename, evaluation))
        if run_part(path)[:1] != (AGENT,) and session_part(path)[:1] in {(), (SUBMISSIONS,)}:
            raise error
        contents.leave_out("directories that cannot be read")

    for directory, folders, names in os.walk(evaluation, onerror=leave_out):
        path = PurePosixPath(os.path.relpath(directory, evaluation))
        if len(path.parts) >= MAX_DEPTH:
            folders.clear()
            leave_out(OSError(0, "it lies too deep", directory))
            continue
        if in_submission(path) and not folders and not names:
            contents.directories.append(path)
        links = [name for name in folders if (Path(directory) / name).is_symlink()]
        for name in (*names, *links):
            _add_file(contents, evaluation, path / name, optional)
    contents.files.sort()
    contents.directories.sort()
    contents.links = dict(sorted(contents.links.items()))
    return contents


def _add_file(contents: _Contents, top: Path, path: PurePosixPath, optional: Collection[Optional]) -> None:
    status, reason = (top / path).lstat(), _reason_against(path, optional)
    if stat.S_ISLNK(status.st_mode) and in_submission(path) and not reason:
        contents.links[path] = os.readlink(top / path)  # noqa: PTH115 - to the letter, as its hash has it
    elif not stat.S_ISREG(status.st_mode):
        contents.leave_out("neither a file nor a link of a submission")
    elif reason:
        contents.leave_out(reason, status.st_size)
    else:
        contents.files.append(path)


def _reason_against(path: PurePosixPath, optional: Collection[Optional]) -> str:
    """Return why a file is not in a bundle; nothing if it is."""
    top, of_run, of_session = path.parts[0], run_part(path), session_part(path)
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


def _secrets(evaluation: Path, plan: Mapping[str, Any], variables: Iterable[str]) -> list[str]:
    """Return all values that must not be in the bundle of an evaluation.

    These are the values of the variables that the plan names, those of all other variables and keys of the plan whose
    name is that of a key, a token or a password, and the tokens of the runs' servers.
    """
    chosen = [os.environ.get(name, "") for name in sorted(variables)]
    named = [*sorted(os.environ.items()), *_entries(plan)]
    guessed = [value for name, value in named if _SECRET_NAME.search(name)]
    # Only files that the server wrote: an agent that chose what is taken out could hide its work.
    files = [file for run in ("*", f"*/{TRIES}/*") for file in sorted(evaluation.glob(f"{RUNS}/{run}/{TOKEN}"))]
    tokens = [read_plain(file, _LONGEST_TOKEN).decode(errors="replace").strip() for file in files]
    long = [value for value in (*guessed, *tokens) if len(value) >= _SHORTEST]
    return [value for value in dict.fromkeys([*chosen, *long]) if forms(value)]


def _holds_one(path: Path, secrets: Sequence[str]) -> bool:
    """Tell whether a file has one of these values in it, as a text of UTF-8 or in JSON."""
    wanted = [form.encode("utf-8", "surrogateescape") for secret in secrets for form in forms(secret)]
    overlap, rest = max(map(len, wanted), default=0), b""
    with path.open("rb") as file:
        while wanted and (chunk := file.read(_CHUNK)):
            block = rest + chunk
            if any(form in block for form in wanted):
                return True
            rest = block[-overlap:]
    return False


def _entries(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts of a plan with their keys."""
    for key, entry in value.items() if isinstance(value, dict) else ():
        if isinstance(entry, str):
            yield str(key), entry
        yield from _entries(entry)


def _variables(value: Any, *, named: bool) -> Iterator[str]:
    """Yield the environment variables that a plan names as those of keys, tokens and secrets."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _variables(entry, named=named or bool(_NAMES_VARIABLES.search(str(key))))
    elif isinstance(value, list):
        for entry in value:
            yield from _variables(entry, named=named)
    elif named and isinstance(value, str) and _VARIABLE.fullmatch(value):
        yield value
