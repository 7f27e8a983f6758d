"""A workspace in a directory of this machine, such as ``/home/agent`` in a container."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from mlab_agent.workspaces import bubblewrap
from mlab_agent.workspaces.base import ScriptResult, Workspace
from mlab_agent.workspaces.files import MIB, WorkspaceError, parents_and_self
from mlab_agent.workspaces.live_output import LiveOutput
from mlab_agent.workspaces.local_files import LocalFiles, workspace_errors
from mlab_agent.workspaces.privileges import (
    can_drop_capabilities,
    child_environment,
    home_of,
    owner_for_scripts,
    without_loader_variables,
    without_privileges,
)
from mlab_agent.workspaces.read_only_files import mount_points
from mlab_agent.workspaces.run_script import run_command
from mlab_agent.workspaces.safe_fs import SafeDirectory, replace_file
from mlab_agent.workspaces.script_outputs import ScriptOutputs

if TYPE_CHECKING:
    from collections.abc import Sequence

_GIB = 1 << 30
_MOUNTS = 200
_SUBMISSION = "submission.txt"


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
            copy_limit=64 * MIB,
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
        command, environment = without_loader_variables(command, environment)
        run_as = None
        if self._use_bubblewrap:
            command = bubblewrap.wrapped(
                command, self.root, read_only=self._mounted(), owner=owner, environment=os.environ
            )
        elif owner is None or can_drop_capabilities():
            command = without_privileges(command, owner)
        elif owner != (os.getuid(), os.getgid()):
            run_as = owner
        try:
            with workspace_errors(name), self._outputs.open() as streams:
                live = LiveOutput(streams, self.show_output or (lambda _stream, _line: None))
                result = run_command(
                    command,
                    self.root,
                    environment,
                    streams,
                    timeout_s=timeout_s,
                    output_limit=_GIB,
                    owner=run_as,
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

    @override
    def _out_of_reach(self, names: Sequence[str]) -> set[str]:
        """Choose what is mounted read-only, nothing in another read-only directory; return the files in it."""
        tops = {next(above for above in parents_and_self(name) if self._is_read_only(above)) for name in names}
        self._mount_points = mount_points(self.files, tops, _MOUNTS) if self._use_bubblewrap else []
        chosen = set(self._mount_points)
        return {name for name in names if not chosen.isdisjoint(parents_and_self(name))}

    def _mounted(self) -> list[str]:
        """Return the paths to mount read-only."""
        stamps = self.files.stamps(self._mount_points)
        inside = [f"{self.root}/{name}" for name, stamp in stamps.items() if stamp.kind in {"file", "directory"}]
        return [*inside, *filter(os.path.exists, self._protected)]

    @override
    def finish(self, answer: str) -> None:
        """Write the submission."""
        data = answer.encode(errors="replace")
        if self._submission is None:
            with workspace_errors(_SUBMISSION):
                replace_file(self.files.directory, _SUBMISSION, data)
        else:
            with workspace_errors(str(self._submission)), SafeDirectory(str(self._submission.parent)) as directory:
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


def _signal_status(status: int | None) -> int | None:
    """Return bubblewrap's status of a program that a signal ended (128 + signal) in Python's form (negative)."""
    return 128 - status if status is not None and 128 < status < 128 + 65 else status  # noqa: PLR2004
