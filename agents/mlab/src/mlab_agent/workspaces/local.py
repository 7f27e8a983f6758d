"""A workspace in a directory of this machine, such as ``/home/agent`` in a container."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from mlab_agent.workspaces import bubblewrap
from mlab_agent.workspaces.base import ScriptResult, Workspace
from mlab_agent.workspaces.files import (
    MIB,
    FileKind,
    Files,
    FileStamp,
    WorkspaceError,
    matches_itself,
    parents_and_self,
)
from mlab_agent.workspaces.live_output import LiveOutput
from mlab_agent.workspaces.privileges import child_environment, home_of, owner_for_scripts, without_privileges
from mlab_agent.workspaces.run_script import run_command
from mlab_agent.workspaces.safe_fs import SafeDirectory, replace_file
from mlab_agent.workspaces.script_outputs import ScriptOutputs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_GIB = 1 << 30
_SUBMISSION = "submission.txt"


class LocalFiles(Files):
    """The files of a directory of this machine."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.directory = SafeDirectory(root)

    @override
    def resolve(self, path: str) -> str:
        with _workspace_errors(path):  # a link may become a directory while it is looked at
            if not self.is_in_place():
                raise WorkspaceError(f"{self.root} is not the workspace any more: it was moved, replaced or removed")
            return self._relative(os.path.realpath(os.path.join(self.root, path)), path)  # noqa: PTH118 - no "." is to go

    @override
    def stat(self, name: str) -> FileStamp | None:
        with _workspace_errors(name):
            try:
                return _stamp(self.directory.stat(name))
            except (FileNotFoundError, NotADirectoryError):
                return None

    @override
    def stamps(self, names: Iterable[str]) -> dict[str, FileStamp]:
        stamps = {}
        for name in names:
            with contextlib.suppress(OSError):
                stamps[name] = self._with_target(name, _stamp(self.directory.stat(name)))
        return stamps

    @override
    def entries(self, name: str) -> dict[str, FileStamp]:
        stamps = {}
        with _workspace_errors(name), self.directory.scan(name) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    stamps[entry.name] = _stamp(entry.stat(follow_symlinks=False))
        return stamps

    @override
    def scan(self, excluded: Sequence[str]) -> dict[str, FileStamp]:
        stamps: dict[str, FileStamp] = {}
        pending = [""]
        while pending:
            prefix = pending.pop()
            with contextlib.suppress(OSError), self.directory.scan(prefix.rstrip("/") or ".") as entries:
                for entry in entries:
                    name = f"{prefix}{entry.name}"
                    if not matches_itself(name, excluded):
                        with contextlib.suppress(OSError):
                            stamps[name] = self._with_target(name, _stamp(entry.stat(follow_symlinks=False)))
                            if stamps[name].kind == "directory":
                                pending.append(f"{name}/")
        return stamps

    @override
    def read(self, name: str) -> bytes:
        with _workspace_errors(name), open(self.directory.open(name), "rb") as file:  # noqa: PTH123 - a descriptor
            return file.read()

    @override
    def write(self, name: str, data: bytes, mode: int | None = None) -> None:
        with (
            _workspace_errors(name),
            self.directory.replacement(name, mode) as descriptor,
            open(descriptor, "wb", closefd=False) as file,
        ):
            file.write(data)

    @override
    def copy(self, source: str, destination: str) -> None:
        with (
            _workspace_errors(destination),
            open(self.directory.open(source), "rb") as old,  # noqa: PTH123
            self.directory.replacement(destination) as descriptor,
            open(descriptor, "wb", closefd=False) as new,
        ):
            shutil.copyfileobj(old, new, MIB)

    @override
    def link(self, name: str, target: str) -> None:
        with _workspace_errors(name):
            self.directory.link(name, target)

    @override
    def make_directory(self, name: str) -> None:
        with _workspace_errors(name):
            self.directory.make_directory(name)

    @override
    def delete(self, name: str) -> None:
        with _workspace_errors(name):
            self.directory.delete(name)

    def _with_target(self, name: str, stamp: FileStamp) -> FileStamp:
        if stamp.kind != "link":
            return stamp
        return FileStamp(stamp.kind, stamp.size, stamp.mode, stamp.changed, self.directory.target(name))

    def is_in_place(self) -> bool:
        """Tell whether the directory's path still leads to it."""
        try:
            return os.path.samestat(os.lstat(self.root), self.directory.stat("."))
        except OSError:
            return False

    def put_back(self) -> str | None:
        """Move the directory back to its path if it was moved; return a sentence about what was done."""
        if self.is_in_place():
            return None
        parent = os.path.dirname(self.root)  # noqa: PTH120
        try:
            if os.path.realpath(parent) != parent:
                return f"The script moved the workspace, and {parent} is a link now: put it back yourself."
            os.makedirs(parent, exist_ok=True)  # noqa: PTH103
            if os.path.lexists(self.root):
                os.rename(self.root, f"{self.root}.{os.urandom(4).hex()}")  # noqa: PTH104
            os.rename(os.readlink(f"/proc/self/fd/{self.directory.descriptor}"), self.root)  # noqa: PTH104, PTH115
        except OSError as error:
            return f"The script moved or removed the workspace, which could not be put back: {error.strerror}"
        return "The script moved the workspace; it was put back."


class LocalWorkspace(Workspace):
    """A directory here. Nothing but a script can change what is outside of it.

    A script runs as this user, or for root as the owner of the directory, without capabilities, and with a short
    environment. Where bubblewrap works, read-only files are mounted read-only for it; elsewhere they are compared
    afterwards and restored from copies.
    """

    files: LocalFiles

    def __init__(
        self,
        directory: Path,
        *,
        state: Path | None = None,
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
            state: a directory outside of the workspace, for copies of read-only files; else a temporary one.
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
        self._use_bubblewrap = bubblewrap.is_available() if use_bubblewrap is None else use_bubblewrap
        self._temporary = None if state else tempfile.TemporaryDirectory(prefix="mlab-agent-")
        files = LocalFiles(os.path.realpath(directory))
        super().__init__(
            files,
            python=_interpreter(python),
            read_only=read_only,
            copies=(state or Path(self._temporary.name if self._temporary else "")) / "read-only",
            copy_limit=0 if self._use_bubblewrap else 64 * MIB,  # a mount protects them, whatever their size
            copies_limit=_GIB,
            read_limit=32 * MIB,
            snapshot_limit=snapshot_limit,
            snapshot_excludes=snapshot_excludes,
        )
        self._outputs = ScriptOutputs(files.directory)
        self._protected = [os.path.realpath(path) for path in protected]
        self._pass_variables = tuple(pass_variables)

    @override
    def _run_command(self, name: str, command: Sequence[str], timeout_s: float) -> ScriptResult:
        owner = owner_for_scripts(self.files.directory.descriptor)
        environment = child_environment(os.environ, self._secrets, self._pass_variables) | home_of(owner, self.root)
        if self._use_bubblewrap:
            command = bubblewrap.wrapped(
                command, self.root, read_only=self._mounted(), owner=owner, environment=os.environ
            )
        else:
            command = without_privileges(command, owner)
        try:
            with _workspace_errors(name), self._outputs.open() as streams:
                live = LiveOutput(streams, self.show_output or (lambda _stream, _line: None))
                result = run_command(
                    command,
                    self.root,
                    environment,
                    streams,
                    timeout_s=timeout_s,
                    output_limit=_GIB,
                    poll=live.poll if self.show_output else lambda: None,
                )
                if self.show_output:
                    live.finish()
                stdout, stderr, output_file = self._outputs.collect(streams, self._output_limit)
        finally:
            moved = self.files.put_back()
            notes = self._read_only_files.restore()
        notes += [moved] if moved else []
        if not result.all_ended:
            notes.append("Processes of the script are still running: it starts new ones faster than they can be ended.")
        if result.output_too_long:
            notes.append("The script was stopped because it wrote more than 1 GiB.")
        status = _signal_status(result.status) if self._use_bubblewrap else result.status
        return ScriptResult(stdout, stderr, status, result.timed_out, result.seconds, output_file, tuple(notes))

    def _mounted(self) -> list[str]:
        """Return the paths to mount read-only, without those in other read-only directories."""
        names = {
            next(ancestor for ancestor in parents_and_self(name) if self._is_read_only(ancestor))
            for name in self._read_only_files.names
        }
        stamps = self.files.stamps(names)
        inside = [f"{self.root}/{name}" for name, stamp in stamps.items() if stamp.kind in {"file", "directory"}]
        return [*inside, *filter(os.path.exists, self._protected)]

    @override
    def finish(self, answer: str) -> None:
        """Write the submission."""
        data = answer.encode(errors="replace")
        if self._submission is None:
            with _workspace_errors(_SUBMISSION):
                replace_file(self.files.directory, _SUBMISSION, data)
        else:
            with _workspace_errors(str(self._submission)), SafeDirectory(str(self._submission.parent)) as directory:
                replace_file(directory, self._submission.name, data)
        self.finished = True

    @override
    def close(self) -> None:
        """Close the directory, and remove temporary copies."""
        self.files.directory.close()
        if self._temporary is not None:
            self._temporary.cleanup()


def _interpreter(python: str | None) -> str:
    if python is None:
        return shutil.which("python") or shutil.which("python3") or sys.executable
    program = shutil.which(python)
    if program is None:
        raise WorkspaceError(f"there is no program {python} to run Python scripts with")
    return str(Path(program).absolute())  # a link stays one: it may be a virtual environment's


def _kind(mode: int) -> FileKind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def _stamp(status: os.stat_result) -> FileStamp:
    kind = _kind(status.st_mode)
    changed = (
        "" if kind == "directory" else f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
    )
    return FileStamp(kind, status.st_size, stat.S_IMODE(status.st_mode), changed)


def _signal_status(status: int | None) -> int | None:
    """Return bubblewrap's status of a program that a signal ended (128 + signal) in Python's form (negative)."""
    return 128 - status if status is not None and 128 < status < 128 + 65 else status  # noqa: PLR2004


@contextlib.contextmanager
def _workspace_errors(name: str) -> Iterator[None]:
    """Turn the system's errors into observations."""
    try:
        yield
    except OSError as error:
        raise WorkspaceError(f"{name}: {error.strerror or error}") from None
