"""A home in a directory of this machine, such as ``/home/agent`` in a container."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from mlab_agent.homes import PRIVATE, Entry, Execution, HomeError, containment, running
from mlab_agent.homes.beneath import Beneath
from mlab_agent.homes.guarding import Guard
from mlab_agent.homes.outputs import Outputs
from mlab_agent.homes.workspace import MIB, Kind, Stamp, Workspace, matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["LocalHome"]

_GIB = 1 << 30
_SUBMISSION = "submission.txt"


class LocalHome(Workspace):
    """A directory here. Nothing but a script can touch what is outside of it.

    A script runs as this user, without secrets in its environment. Where bubblewrap works, read-only files are mounted
    read-only for it; everywhere they are looked at afterwards and put back from copies.
    """

    instructions: str | None = None
    gives_scores = False

    def __init__(
        self,
        directory: Path,
        *,
        state: Path | None = None,
        read_only: Sequence[str] = (),
        submission: Path | None = None,
        secrets: Sequence[str] = (),
        passed: Sequence[str] = (),
        python: str | None = None,
        shown_chars: int = 20_000,
        contain: bool | None = None,
        left_out: Sequence[str] = (),
        snapshot_limit: int = 64 * MIB,
    ) -> None:
        """Open a home.

        Args:
            directory: the workspace, which exists.
            state: a directory of ours outside of the workspace, for copies of read-only files; else a temporary one.
            read_only: names or patterns of files and directories that must stay as they are.
            submission: where the final answer goes; ``submission.txt`` in the workspace by default.
            secrets: values that no script's environment may hold, such as the key of the model.
            passed: names of variables that scripts get although they look like secrets'.
            python: the program that runs Python files; by default the first of python and python3, else ours.
            shown_chars: how much of stdout, and of stderr, is returned.
            contain: whether to use bubblewrap; None if it works.
            left_out: what snapshots leave out.
            snapshot_limit: bytes of the longest file in a snapshot.

        Raises:
            HomeError: if there is no such directory.
        """
        super().__init__(read_only, 32 * MIB, snapshot_limit, left_out)
        if not directory.is_dir():
            raise HomeError(f"{directory} is no directory")
        self.root = os.path.realpath(directory)
        self._beneath = Beneath(self.root)
        self._submission = submission
        self._secrets, self._passed = tuple(secrets), tuple(passed)
        self._python = python or shutil.which("python") or shutil.which("python3") or sys.executable
        self._shown = shown_chars
        self._contain = containment.works() if contain is None else contain
        self._temporary = None if state else tempfile.TemporaryDirectory(prefix="mlab-agent-")
        self._state = state or Path(self._temporary.name if self._temporary else "")
        self._outputs = Outputs(self._beneath)
        self._guard = self._watch()

    def _watch(self) -> Guard:
        names: list[str] = []
        if self.read_only:
            every = self.scan(())
            names = [name for name in every if self.is_read_only(name) and every[name].kind != "directory"]
            names = [name for name in names if not matches(name, (PRIVATE,))]
        file_limit = 0 if self._contain else 64 * MIB  # a mount keeps them, whatever their size
        return Guard(self, names, self._state / "read-only", file_limit, _GIB)

    def _resolve(self, path: str) -> str:
        return self._below(os.path.realpath(os.path.join(self.root, path)), path)  # noqa: PTH118 - no "." is to go

    def _plain(self, path: str) -> str:
        with contextlib.suppress(HomeError):
            return self._below(os.path.normpath(os.path.join(self.root, path)), path)  # noqa: PTH118
        return self._resolve(path)

    def _stat(self, name: str) -> Stamp | None:
        with _in_words(name):
            try:
                return _stamp(self._beneath.stat(name))
            except (FileNotFoundError, NotADirectoryError):
                return None

    def _entries(self, name: str) -> list[Entry]:
        entries = []
        with _in_words(name), os.scandir(os.path.join(self.root, name)) as found:  # noqa: PTH118
            for each in found:
                with contextlib.suppress(FileNotFoundError):
                    status = each.stat(follow_symlinks=False)
                    below = each.name if name == "." else f"{name}/{each.name}"
                    entries.append(Entry(each.name, _kind(status.st_mode), status.st_size, self.is_read_only(below)))
        return entries

    def fetch(self, name: str) -> bytes:
        """See :class:`.workspace.Workspace`."""
        with _in_words(name), open(self._beneath.open(name), "rb") as file:  # noqa: PTH123 - a descriptor
            return file.read()

    def put(self, name: str, data: bytes, mode: int | None = None) -> None:
        """See :class:`.workspace.Workspace`."""
        with _in_words(name), self._beneath.replacing(name, mode) as file, open(file, "wb", closefd=False) as new:
            new.write(data)

    def _copy(self, source: str, destination: str) -> None:
        with (
            _in_words(destination),
            open(self._beneath.open(source), "rb") as old,  # noqa: PTH123
            self._beneath.replacing(destination) as file,
            open(file, "wb", closefd=False) as new,
        ):
            shutil.copyfileobj(old, new, MIB)

    def link(self, name: str, target: str) -> None:
        """See :class:`.workspace.Workspace`."""
        with _in_words(name):
            self._beneath.link(name, target)

    def make_directory(self, name: str) -> None:
        """See :class:`.snapshots.Target`."""
        with _in_words(name):
            self._beneath.make_directory(name)

    def delete(self, name: str) -> None:
        """See :class:`.workspace.Workspace`."""
        with _in_words(name):
            self._beneath.delete(name)

    def stamps(self, names: Iterable[str]) -> dict[str, Stamp]:
        """See :class:`.workspace.Workspace`."""
        return {name: self._with_target(name, stamp) for name in names if (stamp := self._stat_plain(name))}

    def _stat_plain(self, name: str) -> Stamp | None:
        with contextlib.suppress(OSError):
            return _stamp(self._beneath.stat(name))
        return None

    def _with_target(self, name: str, stamp: Stamp) -> Stamp:
        if stamp.kind != "link":
            return stamp
        target = os.readlink(os.path.join(self.root, name))  # noqa: PTH115, PTH118
        return Stamp(stamp.kind, stamp.size, stamp.mode, stamp.changed, target)

    def scan(self, left_out: Sequence[str]) -> dict[str, Stamp]:
        """See :class:`.workspace.Workspace`."""
        found: dict[str, Stamp] = {}
        waiting = [""]
        while waiting:
            above = waiting.pop()
            with contextlib.suppress(OSError), os.scandir(f"{self.root}/{above}") as entries:
                for each in entries:
                    name = f"{above}{each.name}"
                    if not _matches_itself(name, each.name, left_out):
                        with contextlib.suppress(OSError):
                            found[name] = self._with_target(name, _stamp(each.stat(follow_symlinks=False)))
                            if found[name].kind == "directory":
                                waiting.append(f"{name}/")
        return found

    def execute(self, script: str, arguments: Sequence[str], timeout_s: float) -> Execution:
        """See :class:`mlab_agent.homes.Home`."""
        name = self.name(script)
        self._check_file(name, script, limited=False)
        command = [*self._program(name), *arguments]
        if any("\0" in each for each in arguments):
            raise HomeError("an argument cannot have a NUL character")
        if self._contain:
            kept = [f"{self.root}/{each}" for each in self._mounted()]
            command = containment.contained(command, kept)
        environment = running.child_environment(os.environ, self._secrets, self._passed)
        try:
            with _in_words(script), self._outputs.next() as streams:
                ended = running.run(command, self.root, environment, streams, timeout_s=timeout_s, most_output=_GIB)
                shown = self._outputs.shown(streams, self._shown)
        finally:
            notes = self._guard.put_back()
        if ended.too_long:
            notes.append("The script was stopped because it wrote more than 1 GiB.")
        status = _status(ended.status) if self._contain else ended.status
        return Execution(shown.stdout, shown.stderr, status, ended.timed_out, ended.seconds, shown.whole, tuple(notes))

    def _program(self, name: str) -> list[str]:
        if name.endswith(".py"):
            return [self._python, "-u", f"./{name}"]
        if name.endswith((".sh", ".bash")):
            return ["bash", f"./{name}"]
        stamp = self._stat(name)
        if stamp and stamp.mode & stat.S_IXUSR:
            return [f"./{name}"]
        raise HomeError(
            f"{name} cannot be run: it is neither a Python file (.py) nor a shell script (.sh), and not executable"
        )

    def _mounted(self) -> list[str]:
        """Return the read-only files and directories to mount, those in read-only directories not by themselves."""
        names = set()
        for name in self._guard.names:
            parts = name.split("/")
            above = ["/".join(parts[: count + 1]) for count in range(len(parts))]
            names.add(next(each for each in above if self.is_read_only(each)))
        now = self.stamps(names)
        return sorted(name for name in names if name in now and now[name].kind in {"file", "directory"})

    def score(self) -> str | None:
        """Return None: a directory has no scorer."""
        return None

    def finish(self, answer: str) -> None:
        """Write the submission."""
        if self._submission is None:
            with _in_words(_SUBMISSION):  # in place of a link, wherever it leads, or of a directory
                if stat.S_ISDIR(self._mode_of(_SUBMISSION)):
                    os.rename(f"{self.root}/{_SUBMISSION}", f"{self.root}/{_SUBMISSION}.{os.urandom(4).hex()}")  # noqa: PTH104
            self.put(_SUBMISSION, answer.encode(errors="replace"))
        else:
            part = self._submission.with_name(f".{self._submission.name}.part")
            with _in_words(str(self._submission)):
                part.write_bytes(answer.encode(errors="replace"))
                part.replace(self._submission)
        self.finished = True

    def _mode_of(self, name: str) -> int:
        with contextlib.suppress(FileNotFoundError):
            return self._beneath.stat(name).st_mode
        return 0

    def close(self) -> None:
        """See :class:`mlab_agent.homes.Home`."""
        self._beneath.close()
        if self._temporary is not None:
            self._temporary.cleanup()


def _matches_itself(name: str, base: str, patterns: Sequence[str]) -> bool:
    return any(
        fnmatch.fnmatchcase(name, pattern) or ("/" not in pattern and fnmatch.fnmatchcase(base, pattern))
        for pattern in patterns
    )


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def _stamp(status: os.stat_result) -> Stamp:
    kind = _kind(status.st_mode)
    changed = (
        "" if kind == "directory" else f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
    )
    return Stamp(kind, status.st_size, stat.S_IMODE(status.st_mode), changed)


def _status(status: int | None) -> int | None:
    """Return what bubblewrap says of a program that a signal ended as Python says it."""
    return 128 - status if status is not None and 128 < status < 128 + 65 else status  # noqa: PLR2004


@contextlib.contextmanager
def _in_words(name: str) -> Iterator[None]:
    """Turn the system's errors into observations."""
    try:
        yield
    except OSError as error:
        raise HomeError(f"{name}: {error.strerror or error}") from None
