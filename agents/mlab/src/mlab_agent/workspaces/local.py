"""A workspace in a directory of this machine, such as ``/home/agent`` in a container.

Scripts run in bubblewrap where that works, which hides the agent and keeps read-only files as they are. Elsewhere they
run as processes of this user, in a group of their own: use a container then.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from typing_extensions import override

from mlab_agent.truncate import truncated_file
from mlab_agent.workspaces.base import ScriptResult, Workspace
from mlab_agent.workspaces.files import (
    KEPT_OUTPUTS,
    MIB,
    OUTPUT_DIRECTORY,
    Files,
    FileStamp,
    WorkspaceError,
    matches_itself,
    parents_and_self,
)
from mlab_agent.workspaces.scripts import (
    LiveOutput,
    bubblewrap_works,
    in_bubblewrap,
    run_command,
    script_environment,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mlab_agent.workspaces.files import FileKind

_MOUNTS = 200
_SUBMISSION = "submission.txt"


class LocalFiles(Files):
    """The files of a directory of this machine."""

    def __init__(self, root: str) -> None:
        self.root = root

    @override
    def resolve(self, path: str) -> str:
        with _workspace_errors(path):
            return self._relative(os.path.realpath(os.path.join(self.root, path)), path)  # noqa: PTH118 - no "." is to go

    @override
    def stat(self, name: str) -> FileStamp | None:
        return self.stamps([name]).get(name)

    @override
    def stamps(self, names: Iterable[str]) -> dict[str, FileStamp]:
        stamps = {}
        for name in names:
            with contextlib.suppress(OSError):
                path = Path(self.root, name)
                stamps[name] = _stamp(path.lstat(), path)
        return stamps

    @override
    def entries(self, name: str) -> dict[str, FileStamp]:
        with _workspace_errors(name):
            return {Path(child).name: stamp for child, stamp in self._children(name)}

    @override
    def scan(self, excluded: Sequence[str]) -> dict[str, FileStamp]:
        stamps: dict[str, FileStamp] = {}
        pending = ["."]
        while pending:
            with contextlib.suppress(OSError):
                for name, stamp in self._children(pending.pop()):
                    if not matches_itself(name, excluded):
                        stamps[name] = stamp
                        if stamp.kind == "directory":
                            pending.append(name)
        return stamps

    def _children(self, name: str) -> Iterator[tuple[str, FileStamp]]:
        prefix = "" if name == "." else f"{name}/"
        with os.scandir(os.path.join(self.root, name)) as entries:  # noqa: PTH118
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    yield f"{prefix}{entry.name}", _stamp(entry.stat(follow_symlinks=False), entry.path)

    @override
    def read(self, name: str) -> bytes:
        with _workspace_errors(name), self._open(name) as file:
            return file.read()

    @override
    def write(self, name: str, data: bytes, mode: int | None = None) -> None:
        with _workspace_errors(name):
            replace_file(self.inside(name, make=True), data, mode)

    @override
    def copy(self, source: str, destination: str) -> None:
        with _workspace_errors(destination), self._open(source) as old:
            replace_file(self.inside(destination, make=True), old)

    @override
    def link(self, name: str, target: str) -> None:
        with _workspace_errors(name):
            path = self.inside(name, make=True)
            path.unlink(missing_ok=True)
            path.symlink_to(target)

    @override
    def make_directory(self, name: str) -> None:
        with _workspace_errors(name):
            self.inside(f"{name}/x", make=True)

    @override
    def delete(self, name: str) -> None:
        with _workspace_errors(name):
            path = self.inside(name)
            if path.is_dir() and not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.rmdir()
            else:
                path.unlink(missing_ok=True)

    def inside(self, name: str, *, make: bool = False) -> Path:
        """Return the path of a name, whose directory is made if asked for; no link on the way may lead elsewhere."""
        path = Path(self.root, name)
        if os.path.realpath(path.parent) != os.path.normpath(path.parent):
            raise WorkspaceError(f"{name}: a link leads elsewhere")
        if make:
            path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _open(self, name: str) -> BinaryIO:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return open(os.open(self.inside(name), flags), "rb")  # noqa: PTH123 - the caller closes it


class LocalWorkspace(Workspace):
    """A directory here. Nothing but a script can change what is outside of it."""

    files: LocalFiles

    def __init__(
        self,
        directory: Path,
        *,
        state: Path,
        python: str | None = None,
        read_only: Sequence[str] = (),
        submission: Path | None = None,
        secrets: Sequence[str] = (),
        output_limit: int = 20_000,
        use_bubblewrap: bool | None = None,
        snapshot_excludes: Sequence[str] = (),
        snapshot_limit: int = 64 * MIB,
        protected: Sequence[Path] = (),
        pass_variables: Sequence[str] = (),
    ) -> None:
        """Open a workspace.

        Args:
            directory: the workspace, which exists.
            state: the run's directory, which is not in the workspace or left out of snapshots.
            python: the interpreter of Python scripts; None for the first one of the path.
            read_only: names or patterns of files and directories that must stay as they are.
            submission: where the final answer goes; ``submission.txt`` in the workspace by default.
            secrets: values that no script's environment may hold, such as the key of the model.
            output_limit: bytes of stdout, and of stderr, that are returned.
            use_bubblewrap: whether to run scripts in bubblewrap; None if it works.
            snapshot_excludes: names or patterns of what snapshots leave out.
            snapshot_limit: bytes of the longest file in a snapshot.
            protected: other files and directories that scripts may not change, where bubblewrap works.
            pass_variables: names of environment variables that scripts get besides the common ones.

        Raises:
            WorkspaceError: if there is no such directory or interpreter.
        """
        if not directory.is_dir():
            raise WorkspaceError(f"{directory} is no directory")
        self._submission = submission
        self._secrets = tuple(secrets)
        self._output_limit = output_limit
        self.contained = bubblewrap_works() if use_bubblewrap is None else use_bubblewrap
        self._mounts: list[str] = []
        super().__init__(
            LocalFiles(os.path.realpath(directory)),
            state=state,
            python=_interpreter(python),
            read_only=read_only,
            read_limit=32 * MIB,
            snapshot_limit=snapshot_limit,
            snapshot_excludes=snapshot_excludes,
        )
        self._protected = [os.path.realpath(path) for path in protected]
        self._pass_variables = tuple(pass_variables)

    @override
    def _run_command(self, name: str, command: Sequence[str], timeout_s: float) -> ScriptResult:
        environment = script_environment(os.environ, self._secrets, self._pass_variables)
        if self.contained:
            inside = (f"{self.root}/{mount}" for mount in self._mounts)
            read_only = [path for path in (*inside, *self._protected) if Path(path).exists()]
            command, environment = in_bubblewrap(command, self.root, read_only, environment), {"PATH": os.defpath}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            streams: tuple[BinaryIO, BinaryIO] = (out, err)
            live = LiveOutput(streams, self.show_output) if self.show_output else None
            start = time.monotonic()
            with _workspace_errors(name):
                status, ended = run_command(command, self.root, environment, streams, timeout_s=timeout_s, live=live)
            seconds = time.monotonic() - start
            stdout, stderr, output_file = self._collect(streams)
        notes = self._read_only_files.restore()
        if ended == "too long":
            notes.append("The script was stopped because it wrote more than 1 GiB.")
        if self.contained and status is not None and 128 < status < 128 + 65:  # noqa: PLR2004 - a signal
            status = 128 - status
        return ScriptResult(stdout, stderr, status, ended == "timeout", seconds, output_file, tuple(notes))

    def _collect(self, streams: tuple[BinaryIO, BinaryIO]) -> tuple[str, str, str | None]:
        """Return stdout, stderr, and the path of a file with both if one was truncated."""
        files = [stream.fileno() for stream in streams]
        sizes = [os.fstat(file).st_size for file in files]
        texts = [
            truncated_file(size, self._output_limit, lambda at, count, file=file: os.pread(file, count, at))  # type: ignore[misc]
            for file, size in zip(files, sizes, strict=True)
        ]
        if max(sizes) <= self._output_limit:
            return texts[0], texts[1], None
        try:
            return texts[0], texts[1], self._keep(streams)
        except (OSError, WorkspaceError):  # a script has put something in the way
            return texts[0], texts[1], None

    def _keep(self, streams: tuple[BinaryIO, BinaryIO]) -> str:
        """Write both outputs to one file, and remove the oldest such files."""
        directory = self.files.inside(f"{OUTPUT_DIRECTORY}/x", make=True).parent
        kept = sorted(int(path.stem) for path in directory.glob("*.txt") if path.stem.isdecimal())
        for number in kept[: 1 - KEPT_OUTPUTS]:
            (directory / f"{number}.txt").unlink()
        name = f"{OUTPUT_DIRECTORY}/{kept[-1] + 1 if kept else 1}.txt"
        with self.files.inside(name).open("xb") as joined:
            for label, stream in zip(("stdout", "stderr"), streams, strict=True):
                stream.seek(0)
                joined.write(f"=== {label} ===\n".encode())
                shutil.copyfileobj(stream, joined)
                joined.write(b"\n")
        return name

    @override
    def _unprotected(self, names: list[str]) -> list[str]:
        """Choose what is mounted read-only, at most 200 outermost files and directories; return the other files."""
        tops = {next(above for above in parents_and_self(name) if self._is_read_only(above)) for name in names}
        kinds = {name: stamp.kind for name, stamp in self.files.stamps(tops).items() if stamp.kind != "link"}
        if self.contained:
            self._mounts = sorted(kinds, key=lambda name: (kinds[name] == "file", name))[:_MOUNTS]
        chosen = set(self._mounts)
        return [name for name in names if chosen.isdisjoint(parents_and_self(name))]

    @override
    def finish(self, answer: str) -> None:
        """Write the submission."""
        path = self._submission or Path(self.root, _SUBMISSION)
        with _workspace_errors(str(path)):
            if path.is_dir() and not path.is_symlink():
                path.rename(f"{path}.{secrets.token_hex(4)}")
            replace_file(path, answer.encode(errors="replace"))
        self.finished = True

    @override
    def close(self) -> None:
        """Do nothing: the files stay."""


def replace_file(path: Path, data: bytes | BinaryIO, mode: int | None = None) -> None:
    """Write a whole file in place of another one, whose mode is kept, or of a link, which is not followed.

    Raises:
        OSError: if it cannot be written.
    """
    old = path.lstat() if path.is_file() and not path.is_symlink() else None
    part = path.with_name(f".mlab-agent-{secrets.token_hex(6)}")
    try:
        with part.open("xb") as file:
            if isinstance(data, bytes):
                file.write(data)
            else:
                shutil.copyfileobj(data, file, MIB)
        if mode is not None or old is not None:
            part.chmod(mode if mode is not None or old is None else stat.S_IMODE(old.st_mode))  # type: ignore[arg-type]
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _interpreter(python: str | None) -> str:
    if python is None:
        return shutil.which("python") or shutil.which("python3") or sys.executable
    program = shutil.which(python)
    if program is None:
        raise WorkspaceError(f"there is no program {python} to run Python scripts with")
    return str(Path(program).absolute())  # a link stays one: it may be a virtual environment's


def _stamp(status: os.stat_result, path: str | Path) -> FileStamp:
    kind: FileKind = "other"
    target = ""
    if stat.S_ISREG(status.st_mode):
        kind = "file"
    elif stat.S_ISDIR(status.st_mode):
        kind = "directory"
    elif stat.S_ISLNK(status.st_mode):
        kind, target = "link", os.readlink(path)  # noqa: PTH115
    changed = f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
    return FileStamp(kind, status.st_size, stat.S_IMODE(status.st_mode), "" if kind == "directory" else changed, target)


@contextlib.contextmanager
def _workspace_errors(name: str) -> Iterator[None]:
    """Turn the system's errors into observations."""
    try:
        yield
    except OSError as error:
        raise WorkspaceError(f"{name}: {error.strerror or error}") from None
