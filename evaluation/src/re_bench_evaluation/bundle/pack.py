"""Packing an evaluation's directory into a bundle."""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
from dataclasses import dataclass, replace
from importlib.metadata import version
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO, Self

from re_bench.data.files import sha256_of
from re_bench.data.redaction import redacted, redacted_value
from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import temporary_directory
from re_bench.records import ATTEMPTS, EvaluationRecord, RunRecord, run_directories
from re_bench.runs.attempts import AttemptLog, encoded
from re_bench_evaluation.bundle.contents import MAX_TEXT_MIB, Contents, contents_of, in_submission, submission_of
from re_bench_evaluation.bundle.manifest import FILE, LeftOut, Manifest, Packed, read_path, written
from re_bench_evaluation.bundle.secrets import holds_one, values_of, variables_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path, PurePosixPath

    from re_bench_evaluation.bundle.contents import Optional

_WITHHELD = "withheld"
"""Of an attempt's details: what the scorer keeps from the agent because it may quote held-out data."""


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


def pack(evaluation: Path, out: Path, *, optional: Collection[Optional] = (), max_mib: int = 4096) -> PackedBundle:
    """Write the bundle of an evaluation; the same files give the same bytes.

    Keys are taken out of logs and records; a submission that holds one is left out.

    Args:
        evaluation: its directory.
        out: the file to write; it must not exist.
        optional: what it has besides.
        max_mib: the most that its files may be together, in MiB.

    Raises:
        UsageError: if it is no evaluation, too large, or the file cannot be written.
        ReBenchError: if a record is damaged, or a file changed while it was packed.
    """
    if not (evaluation / EvaluationRecord.file_name()).is_file():
        raise UsageError(f"{evaluation}: there is no {EvaluationRecord.file_name()}; give an evaluation's directory")
    record = EvaluationRecord.load(evaluation)
    runs = [RunRecord.load(directory) for directory in run_directories(evaluation)]
    try:
        with temporary_directory("re-bench-bundle-") as scratch:
            packer = _Packer(evaluation, scratch, values_of(evaluation, record.plan))
            manifest = packer.manifest(record, contents_of(evaluation, optional), max_mib)
            packer.write(manifest, out)
    except OSError as error:
        hint = "; remove it, or give another --out FILE" if isinstance(error, FileExistsError) else ""
        raise UsageError(f"{error.filename or out}: the bundle cannot be made: {error.strerror}{hint}") from None
    unfinished = tuple(run.run for run in runs if run.state in ("waiting", "running"))
    unknown = tuple(sorted(name for name in variables_of(record.plan) if name not in os.environ))
    return PackedBundle(out, sha256_of(out), manifest, unfinished, unknown)


class _Packer:
    def __init__(self, evaluation: Path, scratch: Path, secrets: Sequence[str]) -> None:
        self._top, self._scratch, self._secrets = evaluation, scratch, secrets
        self._instead: dict[PurePosixPath, Path] = {}
        """By path: the file that is packed in the place of one from which something was taken."""
        self._changed: dict[str, str] = {}

    def manifest(self, record: EvaluationRecord, contents: Contents, max_mib: int) -> Manifest:
        self._leave_out_secret_submissions(contents)
        sizes = {path: (self._top / path).lstat().st_size for path in contents.files}
        if sum(sizes.values()) > max_mib << 20:
            submissions = sum(size for path, size in sizes.items() if in_submission(path))
            raise UsageError(
                f"the bundle's files are {sum(sizes.values()) >> 20} MiB together, {submissions >> 20} MiB of them "
                f"submissions, and may be {max_mib} MiB; allow more with --max-mib"
            )
        files = {written(path): self._packed(path) for path in contents.files}
        left_out = (LeftOut(reason=reason, **count) for reason, count in sorted(contents.left_out.items()))
        return Manifest(
            evaluation=record.name,
            created=record.created,
            files=files,
            directories=tuple(map(written, contents.directories)),
            links={written(path): written(destination) for path, destination in contents.links.items()},
            changed=self._changed,
            left_out=tuple(left_out),
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
                        path = read_path(name)
                        with _Checked((self._instead.get(path) or self._top / path).open("rb"), entry, name) as reader:
                            archive.addfile(_member(name, entry.bytes, executable=entry.executable), reader)
            except BaseException:
                out.unlink()
                raise

    def _leave_out_secret_submissions(self, contents: Contents) -> None:
        holding = {
            submission_of(path)
            for path in contents.files
            if in_submission(path) and holds_one(self._top / path, self._secrets)
        }
        for path in [path for path in contents.files if in_submission(path) and submission_of(path) in holding]:
            contents.leave_out("submissions that hold a key", (self._top / path).lstat().st_size)
            contents.files.remove(path)
        contents.links = {path: target for path, target in contents.links.items() if submission_of(path) not in holding}
        contents.directories = [path for path in contents.directories if submission_of(path) not in holding]

    def _packed(self, path: PurePosixPath) -> Packed:
        source = self._top / path
        if in_submission(path):
            executable = bool(source.stat().st_mode & 0o100)
            return Packed(sha256=sha256_of(source), bytes=source.stat().st_size, executable=executable)
        source = self._without_secrets(path)
        return Packed(sha256=sha256_of(source), bytes=source.stat().st_size)

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
        """Return the whole lines of an attempt log, made anew where something has to be taken out."""
        lines = []
        for attempt in AttemptLog(log).read().attempts:
            told = {key: value for key, value in attempt.details.items() if key != _WITHHELD}
            details = redacted_value(told, self._secrets, similar=True)
            clean = replace(attempt, details=details, message=redacted(attempt.message, self._secrets, similar=True))
            lines.append(encoded(clean) + b"\n")
        return b"".join(lines)


class _Checked:
    """A file that is read once from its beginning to its end, and must still be as the manifest has it."""

    def __init__(self, file: BinaryIO, entry: Packed, name: str) -> None:
        self._file, self._entry, self._name, self._hash = file, entry, name, hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self._hash.update(data)
        return data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self._file:
            if kind is None and self._hash.hexdigest() == self._entry.sha256:
                return
        if kind is None or kind is OSError:  # tarfile's, of a file that is shorter now
            raise ReBenchError(f"{self._name}: it changed while it was packed; pack when the evaluation has ended")


def _member(name: str, size: int, *, executable: bool = False) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o755 if executable else 0o644
    return member
