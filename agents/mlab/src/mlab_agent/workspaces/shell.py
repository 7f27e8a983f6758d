"""Files and scripts through a shell: lines of bash with the usual GNU programs (coreutils, findutils)."""

from __future__ import annotations

import abc
import base64
import hashlib
import os
import posixpath
import secrets
import shlex
import time
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

from mlab_agent.truncate import truncated_file
from mlab_agent.workspaces.base import ScriptResult, Workspace
from mlab_agent.workspaces.files import (
    KEPT_OUTPUTS,
    OUTPUT_DIRECTORY,
    SKIPPED_DIRECTORIES,
    FileStamp,
    WorkspaceError,
    matches,
    printable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mlab_agent.workspaces.files import FileKind

TIMEOUT_S = 60.0
"""Of a command that only handles files."""
_KINDS: Mapping[str, FileKind] = {"f": "file", "d": "directory", "l": "link"}
_STAMP_FORMAT = r"%y\0%s\0%m\0%i:%s:%T@:%C@\0%l\0%p\0"  # of find -printf
_STAMP_FIELDS = 6
_OUTPUT_BYTES = 20_000  # of stdout, and of stderr, that are returned
_TIMEOUT_STATUSES = (124, 137)
_SIGNAL_STATUSES = range(129, 193)
_NEXT_NUMBER = (
    f"mkdir -p {OUTPUT_DIRECTORY}"
    f" && n=$(ls {OUTPUT_DIRECTORY} | sed -n 's/^\\([0-9][0-9]*\\)\\..*/\\1/p' | sort -n | tail -n 1)"
    f" && n=$((${{n:-0}} + 1)) && ls {OUTPUT_DIRECTORY} | sort -n | head -n -{KEPT_OUTPUTS - 1}"
    f' | while read -r f; do rm -f "{OUTPUT_DIRECTORY}/$f"; done; echo "$n"'
)
"""Prints the number of the next script, and removes old outputs."""
_KILL_MARKED = (
    'for e in /proc/[0-9]*/environ; do if grep -qz "^{mark}$" "$e" 2>/dev/null; then p=${{e#/proc/}};'
    ' kill -9 "${{p%/environ}}" 2>/dev/null; fi; done; true'
)


class CommandEnd(NamedTuple):
    """How a command came to its end."""

    text: str
    """What it wrote, or what stopped it."""
    interrupted: bool = False
    """Whether it was stopped because of neither itself nor its time limit, such as with its server."""


class Files(abc.ABC):
    """The files below one directory, without rules about what may be written.

    A subclass says how commands get to a shell there. Every method may raise :class:`WorkspaceError`.
    """

    received_bytes: int
    """How much is read at a time."""
    root = "."
    """The absolute path of the directory, as scripts see it."""

    @abc.abstractmethod
    def shell(self, script: str) -> bytes:
        """Run a few lines in the workspace, and return what they write.

        Raises:
            WorkspaceError: if they fail, with their message.
        """

    @abc.abstractmethod
    def _send(self, part: str, data: bytes, begin: str) -> str:
        """Send the content of a new file ``part``; return the command that completes it, which is run afterwards.

        Args:
            part: its name.
            data: the content.
            begin: a command that is to be run before anything else, and makes its directory.
        """

    def program(self, python: str | None) -> str:
        """Return the interpreter of Python scripts: the one that is named, by default the first one of the path.

        Raises:
            WorkspaceError: if the one that is named is not there.
        """
        if python is None:
            return self.shell("command -v python || command -v python3 || echo python3").decode().split("\n")[0]
        program = self.shell(f"command -v {shlex.quote(python)} || true").decode().strip()
        if not program:
            raise WorkspaceError(f"there is no program {python} to run Python scripts with")
        return program

    def resolve(self, path: str) -> str:
        """Return the name of a path with all links followed, "." for the directory itself.

        Raises:
            WorkspaceError: if it leads out of the workspace.
        """
        joined = shlex.quote(posixpath.join(self.root, path))
        return self._relative(os.fsdecode(self.shell(f"realpath -mz -- {joined}")).rstrip("\0"), path)

    def resolve_lexically(self, path: str) -> str:
        """Return the name of a path with no link followed, or the real name if that path seems to lead out."""
        try:
            return self._relative(posixpath.normpath(posixpath.join(self.root, path)), path)
        except WorkspaceError:
            return self.resolve(path)

    def stat(self, name: str) -> FileStamp | None:
        """Return the stamp of a file or directory, None if it does not exist."""
        return self.stamps([name]).get(name)

    def stamps(self, names: Iterable[str]) -> dict[str, FileStamp]:
        """Return the stamps of those names that exist, no links followed."""
        joined = "\0".join(f"./{name}" for name in names)
        if not joined:
            return {}
        encoded = base64.b64encode(joined.encode(errors="surrogateescape")).decode()
        loop = f"for f; do find -P \"$f\" -maxdepth 0 -printf '{_STAMP_FORMAT}'; done 2>/dev/null"
        return _parse_stamps(
            self._output_of(f"printf %s {encoded} | base64 -d | xargs -0 sh -c {shlex.quote(loop)} sh; true")
        )

    def entries(self, name: str) -> dict[str, FileStamp]:
        """Return the entries of a directory by their last part, in any order."""
        command = f"find -P {_quoted(name)} -mindepth 1 -maxdepth 1 -printf '{_STAMP_FORMAT}' 2>/dev/null; true"
        stamps = _parse_stamps(self._output_of(command))
        return {child.rpartition("/")[2]: stamp for child, stamp in stamps.items()}

    def scan(self, excluded: Sequence[str]) -> dict[str, FileStamp]:
        """Return all files, links and directories, except those that match a pattern and what is in them."""
        pruned = " -o ".join(f"-name {name}" for name in SKIPPED_DIRECTORIES if name in excluded) or "-false"
        command = rf"find -P . -mindepth 1 \( {pruned} \) -prune -o -printf '{_STAMP_FORMAT}' 2>/dev/null; true"
        stamps = _parse_stamps(self._output_of(command))
        return {name: stamp for name, stamp in stamps.items() if not matches(name, excluded)}

    def read(self, name: str) -> bytes:
        """Return a whole file."""
        return self._read_pieces(_quoted(name), "true", name)

    def write(self, name: str, data: bytes, mode: int | None = None) -> None:
        """Write a whole file or nothing; parents are made, and None keeps the mode that the file has."""
        part = posixpath.join(posixpath.dirname(name), f".mlab-agent-{secrets.token_hex(6)}")
        put = self._send(part, data, self.enter(name))
        self._replace(name, part, put, f"[ $(stat -c %s {_quoted(part)}) = {len(data)} ]", mode)

    def copy(self, source: str, destination: str) -> None:
        """Copy a file over another one, whose mode is kept, or to a new name."""
        part = posixpath.join(posixpath.dirname(destination), f".mlab-agent-{secrets.token_hex(6)}")
        self._replace(destination, part, self.enter(destination), f"cat -- {_quoted(source)} > {_quoted(part)}", None)

    def link(self, name: str, target: str) -> None:
        """Make a symbolic link, which replaces a file or link."""
        self.shell(f"{self.enter(name)} && ln -sfnT -- {shlex.quote(target)} {_quoted(name)}")

    def delete(self, name: str) -> None:
        """Remove a file or link, or an empty directory; a directory that is not empty stays."""
        target = _quoted(name)
        self.shell(
            f"{self.enter(name)} && if [ -d {target} ] && [ ! -L {target} ]; then rmdir -- {target} || true;"
            f" else rm -f -- {target}; fi"
        )

    def enter(self, name: str) -> str:
        """Return a command that makes the directory of a name, and fails if a link leads out of it."""
        parent = posixpath.dirname(name)
        directory = shlex.quote(posixpath.join(self.root, parent).rstrip("/") or "/")
        check = f"[ \"$(realpath -mz -- {directory} | tr -d '\\0')\" = {directory} ]"
        return (
            f"{{ {check} || {{ echo {directory}: a link leads elsewhere >&2; false; }}; }} && mkdir -p -- {directory}"
        )

    def _replace(self, name: str, part: str, put: str, check: str, mode: int | None) -> None:
        """Complete a file ``part``, and move it to its name."""
        new, old = _quoted(part), _quoted(name)
        keep = f"if [ -f {old} ] && [ ! -L {old} ]; then chmod --reference={old} {new}; fi"
        set_mode = keep if mode is None else f"chmod {mode:o} {new}"
        self.shell(
            f"{{ {put} && {check} && {{ {set_mode}; }} && mv -fT -- {new} {old}; }} || {{ rm -f {new}; false; }}"
        )

    def _relative(self, absolute: str, path: str) -> str:
        """Return the name of an absolute path; raise if it leads out of the workspace."""
        if absolute == self.root:
            return "."
        prefix = self.root.rstrip("/") + "/"
        if not absolute.startswith(prefix):
            raise WorkspaceError(f"{path} leads out of the workspace, which is {self.root}")
        return absolute[len(prefix) :]

    def _output_of(self, command: str) -> bytes:
        """Return all that a command writes, by way of a file there if it is much."""
        file = f"/tmp/mlab-agent-{secrets.token_hex(6)}"  # noqa: S108 - of the sandbox
        remove = f"if [ $(stat -c %s {file}) -le {self.received_bytes} ]; then rm {file}; fi"
        data = self._read_pieces(file, f"{{ {command}; }} > {file}", "a file", remove)
        if len(data) > self.received_bytes:
            self.shell(f"rm -f {file}")
        return data

    def _read_pieces(self, file: str, before: str, label: str, after: str = "true") -> bytes:
        """Return a file, whose first piece comes with one call of the shell.

        Args:
            file: its name, quoted for the shell.
            before: a command that is run before the first piece is read.
            label: what to call the file in an error.
            after: a command that is run in the same call, after the first piece was read.
        """
        head = f"sha256sum < {file} | head -c 64 && stat -c %s {file} && head -c {self.received_bytes} {file}"
        line, _end, data = self.shell(f"{before} && {head} && {after}").partition(b"\n")
        digest, size = line[:64].decode(), int(line[64:])
        while len(data) < size:
            piece = self.shell(f"tail -c +{len(data) + 1} {file} | head -c {self.received_bytes}")
            if not piece:
                break
            data += piece
        if hashlib.sha256(data).hexdigest() != digest:
            raise WorkspaceError(f"{label} changed while it was read")
        return data


class ShellFiles(Files):
    """Files that are reached through a sandbox or a server."""

    @abc.abstractmethod
    def run(self, command: str, cleanup: str, timeout_s: float) -> CommandEnd:
        """Run a command that may take long, until it ends or its time is up, and then one that ends what is left of it.

        Args:
            command: what to run, in any directory.
            cleanup: a command that ends all processes that the first one has started.
            timeout_s: for both, in seconds.
        """


class ShellWorkspace(Workspace):
    """A workspace whose scripts run through a shell: all of their processes are found by a mark, and ended."""

    files: ShellFiles
    stopped_by = "The server"
    """What may stop a script besides its time limit, for the model."""

    @override
    def _run_command(self, name: str, command: Sequence[str], timeout_s: float) -> ScriptResult:
        files = f"{OUTPUT_DIRECTORY}/{int(self.files.shell(_NEXT_NUMBER).decode())}"
        mark = f"MLAB_AGENT_EXECUTION={secrets.token_hex(8)}"
        start = time.monotonic()
        result = self.files.run(
            f"cd {shlex.quote(self.root)} && {mark} timeout -k 2 {timeout_s:.3f} {shlex.join(command)}"
            f" > {files}.stdout 2> {files}.stderr < /dev/null; s=$?; mkdir -p {OUTPUT_DIRECTORY};"
            f' echo "$s" > {files}.status',
            _KILL_MARKED.format(mark=mark),
            timeout_s + TIMEOUT_S,
        )
        seconds = time.monotonic() - start
        printed = self.files.shell(f"cat {files}.status 2>/dev/null || true; rm -f {files}.status").decode().strip()
        status = int(printed) if printed else None
        too_late = status is None or (status in _TIMEOUT_STATUSES and seconds >= timeout_s)
        timed_out = too_late and not result.interrupted
        notes = self._read_only_files.restore()
        stdout, stderr, output_file = self._collect(files)
        for stream, text in (("stdout", stdout), ("stderr", stderr)):
            for line in text.splitlines() if self.show_output else ():
                assert self.show_output is not None
                self.show_output(stream, printable(line))
        if status is None:
            notes.append(f"{self.stopped_by} stopped it: {result.text.strip()[-300:]}")
        elif status in _SIGNAL_STATUSES:
            status = 128 - status
        return ScriptResult(
            stdout, stderr, None if timed_out else status, timed_out, seconds, output_file, tuple(notes)
        )

    def _collect(self, files: str) -> tuple[str, str, str | None]:
        """Join both outputs in one file; return stdout, stderr, and the path of that file if one was truncated."""
        streams = [f"{files}.stdout", f"{files}.stderr"]
        joined = (
            f"{{ echo '=== stdout ==='; cat {streams[0]}; printf '\\n=== stderr ===\\n'; cat {streams[1]}; echo; }}"
        )
        sizes = self.files.shell(
            f"touch {' '.join(streams)}; {joined} > {files}.txt; stat -c %s {' '.join(streams)}"
        ).split()

        def read(file: str, size: bytes) -> str:
            return truncated_file(
                int(size),
                _OUTPUT_BYTES,
                lambda at, count: self.files.shell(f"tail -c +{at + 1} {file} | head -c {count}"),
            )

        stdout, stderr = map(read, streams, sizes)
        self.files.shell(f"rm -f {' '.join(streams)}")
        is_truncated = any(int(size) > _OUTPUT_BYTES for size in sizes)
        return stdout, stderr, f"{files}.txt" if is_truncated else None


def _parse_stamps(printed: bytes) -> dict[str, FileStamp]:
    fields = printed.decode(errors="surrogateescape").split("\0")[:-1]
    stamps = {}
    for start in range(0, len(fields), _STAMP_FIELDS):
        letter, size, mode, changed, target, path = fields[start : start + _STAMP_FIELDS]
        kind: FileKind = _KINDS.get(letter, "other")
        changed = "" if kind == "directory" else changed
        stamps[path.removeprefix("./")] = FileStamp(kind, int(size), int(mode, 8), changed, target)
    return stamps


def _quoted(name: str) -> str:
    """Return a name as the shell needs it."""
    return shlex.quote(f"./{name}")
