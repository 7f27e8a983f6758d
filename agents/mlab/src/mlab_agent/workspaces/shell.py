"""A workspace behind a shell: files and scripts are lines of shell with the usual programs (coreutils, findutils)."""

from __future__ import annotations

import abc
import base64
import hashlib
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
    FileKind,
    Files,
    FileStamp,
    WorkspaceError,
    matches,
    printable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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


class ShellFiles(Files):
    """The files below the directory in which a shell starts. A subclass says how commands get to the shell."""

    received_bytes: int
    """How much is read at a time."""

    def __init__(self) -> None:
        self.calls = 0
        """The number of commands so far; :meth:`run` and :meth:`shell` count them."""
        self._last_stamp: tuple[int, str, FileStamp | None] = (-1, "", None)
        """The stamp of the name that was resolved last, with the number of calls at that time."""
        self.root = "."

    @abc.abstractmethod
    def shell(self, script: str) -> bytes:
        """Run a few lines in the workspace, and return what they write.

        Raises:
            WorkspaceError: if they fail, with their message.
        """

    @abc.abstractmethod
    def run(self, command: str, cleanup: str, timeout_s: float) -> CommandEnd:
        """Run a command that may take long, until it ends or its time is up, and then one that ends what is left of it.

        Args:
            command: what to run, in any directory.
            cleanup: a command that ends all processes that the first one has started.
            timeout_s: for both, in seconds.
        """

    def program(self, python: str | None) -> str:
        """Return the interpreter of Python scripts: the one that is named, else the first one of the path.

        Raises:
            WorkspaceError: if the one that is named is not there.
        """
        if python is None:
            return self.shell("command -v python || command -v python3 || echo python3").decode().split("\n")[0]
        program = self.shell(f"command -v {shlex.quote(python)} || true").decode().strip()
        if not program:
            raise WorkspaceError(f"there is no program {python} to run Python scripts with")
        return program

    @override
    def resolve(self, path: str) -> str:
        # The stamp comes with the name: it is needed next in most cases, and each call takes a while.
        joined = shlex.quote(posixpath.join(self.root, path))
        resolve = f'p=$(realpath -mz -- {joined} | base64 -w0); echo "$p"'
        stamp = (
            "r=$(printf %s \"$p\" | base64 -d | tr -d '\\0'; echo .);"
            f" find -P \"${{r%.}}\" -maxdepth 0 -printf '{_STAMP_FORMAT}'"
        )
        line, _end, rest = self.shell(f"{resolve}; {stamp} 2>/dev/null; true").partition(b"\n")
        absolute = base64.b64decode(line).decode(errors="surrogateescape").rstrip("\0")
        name = self._relative(absolute, path)
        self._last_stamp = (self.calls, name, next(iter(_parse_stamps(rest).values()), None))
        return name

    @override
    def stat(self, name: str) -> FileStamp | None:
        calls, last, stamp = self._last_stamp
        if last == name and calls == self.calls:
            return stamp
        return self.stamps([name]).get(name)

    @override
    def stamps(self, names: Iterable[str]) -> dict[str, FileStamp]:
        joined = "\0".join(f"./{name}" for name in names)
        if not joined:
            return {}
        encoded = base64.b64encode(joined.encode(errors="surrogateescape")).decode()
        loop = f"for f; do find -P \"$f\" -maxdepth 0 -printf '{_STAMP_FORMAT}'; done 2>/dev/null"
        return _parse_stamps(
            self._output_of(f"printf %s {encoded} | base64 -d | xargs -0 sh -c {shlex.quote(loop)} sh; true")
        )

    @override
    def entries(self, name: str) -> dict[str, FileStamp]:
        command = f"find -P {quoted(name)} -mindepth 1 -maxdepth 1 -printf '{_STAMP_FORMAT}' 2>/dev/null; true"
        stamps = _parse_stamps(self._output_of(command))
        return {child.rpartition("/")[2]: stamp for child, stamp in stamps.items()}

    @override
    def scan(self, excluded: Sequence[str]) -> dict[str, FileStamp]:
        pruned = " -o ".join(f"-name {name}" for name in SKIPPED_DIRECTORIES if name in excluded) or "-false"
        command = rf"find -P . -mindepth 1 \( {pruned} \) -prune -o -printf '{_STAMP_FORMAT}' 2>/dev/null; true"
        stamps = _parse_stamps(self._output_of(command))
        return {name: stamp for name, stamp in stamps.items() if not matches(name, excluded)}

    @override
    def read(self, name: str) -> bytes:
        return self._read_pieces(quoted(name), "true", name)

    @override
    def write(self, name: str, data: bytes, mode: int | None = None) -> None:
        parent, part = posixpath.dirname(name), _part_beside(name)
        begin = self._send(part, data, f"mkdir -p -- {quoted(parent or '.')}")
        part = quoted(part)
        set_mode = _keep_mode(name, part) if mode is None else f"chmod {mode:o} {part}"
        self.shell(
            f"{{ {begin} && {{ {set_mode}; }} && [ $(stat -c %s {part}) = {len(data)} ]"
            f" && mv -fT -- {part} {quoted(name)}; }} || {{ rm -f {part}; false; }}"
        )

    @abc.abstractmethod
    def _send(self, part: str, data: bytes, begin: str) -> str:
        """Send the content of a new file ``part``; return the command that completes it, which is run afterwards.

        Args:
            part: its name.
            data: the content.
            begin: a command that is to be run before anything else, and makes its directory.
        """

    @override
    def copy(self, source: str, destination: str) -> None:
        part = quoted(_part_beside(destination))
        self.shell(
            f"{{ mkdir -p -- {quoted(posixpath.dirname(destination) or '.')}"
            f" && cat -- {quoted(source)} > {part} && {_keep_mode(destination, part)}"
            f" && mv -fT -- {part} {quoted(destination)}; }} || {{ rm -f {part}; false; }}"
        )

    @override
    def link(self, name: str, target: str) -> None:
        parent = quoted(posixpath.dirname(name) or ".")
        self.shell(f"mkdir -p -- {parent} && ln -sfnT -- {shlex.quote(target)} {quoted(name)}")

    @override
    def make_directory(self, name: str) -> None:
        self.shell(f"mkdir -p -- {quoted(name)}")

    @override
    def delete(self, name: str) -> None:
        target = quoted(name)
        self.shell(
            f"if [ -d {target} ] && [ ! -L {target} ]; then rmdir -- {target} || true; else rm -f -- {target}; fi"
        )

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
        self._show(stdout, stderr)
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
        texts = [
            truncated_file(int(size), _OUTPUT_BYTES, lambda at, count, file=file: self._read_part(file, at, count))  # type: ignore[misc]
            for file, size in zip(streams, sizes, strict=True)
        ]
        self.files.shell(f"rm -f {' '.join(streams)}")
        is_truncated = any(int(size) > _OUTPUT_BYTES for size in sizes)
        return texts[0], texts[1], f"{files}.txt" if is_truncated else None

    def _show(self, stdout: str, stderr: str) -> None:
        """Show output after the script's end."""
        for stream, text in (("stdout", stdout), ("stderr", stderr)):
            for line in text.splitlines() if self.show_output else ():
                assert self.show_output is not None
                self.show_output(stream, printable(line))

    def _read_part(self, file: str, offset: int, count: int) -> bytes:
        return self.files.shell(f"tail -c +{offset + 1} {file} | head -c {count}")


def _parse_stamps(printed: bytes) -> dict[str, FileStamp]:
    fields = printed.decode(errors="surrogateescape").split("\0")[:-1]
    stamps = {}
    for start in range(0, len(fields), _STAMP_FIELDS):
        letter, size, mode, changed, target, path = fields[start : start + _STAMP_FIELDS]
        kind: FileKind = _KINDS.get(letter, "other")
        changed = "" if kind == "directory" else changed
        stamps[path.removeprefix("./")] = FileStamp(kind, int(size), int(mode, 8), changed, target)
    return stamps


def quoted(name: str) -> str:
    """Return a name as the shell needs it."""
    return shlex.quote(f"./{name}")


def _part_beside(name: str) -> str:
    """Return the name of a new file in the directory of another one."""
    return posixpath.join(posixpath.dirname(name), f".mlab-agent-{secrets.token_hex(6)}")


def _keep_mode(name: str, part: str) -> str:
    return f"if [ -e {quoted(name)} ]; then chmod --reference={quoted(name)} {part}; fi"
