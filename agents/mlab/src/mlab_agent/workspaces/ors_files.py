"""The files of an ORS session: every operation goes through the server's tool ``bash``.

The session runs a few lines of shell with the usual programs (coreutils, findutils), whose output comes back in base64
between two marks: clients lose white space at the borders of what a server sends, and servers add remarks.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import posixpath
import re
import secrets
import shlex
from typing import TYPE_CHECKING

from typing_extensions import override

from mlab_agent.workspaces.files import (
    SKIPPED_DIRECTORIES,
    FileKind,
    Files,
    FileStamp,
    WorkspaceError,
    WorkspaceLostError,
    matches,
)
from mlab_agent.workspaces.ors_session import EpisodeFinishedError, OutcomeUnknownError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mlab_agent.workspaces.ors_record import ToolResult
    from mlab_agent.workspaces.ors_session import OrsSession

TIMEOUT_S = 60.0
"""Of a command that only handles files."""
RECEIVED_BYTES = 20_000
"""How much is read at a time: servers cut the middle out of longer outputs."""
_SENT_BYTES = 400_000  # at a time: commands have a longest length
_KINDS: Mapping[str, FileKind] = {"f": "file", "d": "directory", "l": "link"}
_STAMP_FORMAT = r"%y\0%s\0%m\0%i:%s:%T@:%C@\0%l\0%p\0"  # of find -printf
_STAMP_FIELDS = 6
_TRIES = 3  # of a call during which the server ends


class OrsFiles(Files):
    """The files below the directory in which the session's shell starts."""

    def __init__(self, session: OrsSession) -> None:
        self._session = session
        self._calls = 0
        self._last_stamp: tuple[int, str, FileStamp | None] = (-1, "", None)
        """The stamp of the name that was resolved last, with the number of calls at that time."""
        self.root = "."
        with contextlib.suppress(EpisodeFinishedError):  # then nothing asks for files
            self.root = self.shell("pwd -P").decode().strip()

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
        self._last_stamp = (self._calls, name, next(iter(_parse_stamps(rest).values()), None))
        return name

    @override
    def stat(self, name: str) -> FileStamp | None:
        calls, last, stamp = self._last_stamp
        if last == name and calls == self._calls:
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
        command = f"find -P {_quoted(name)} -mindepth 1 -maxdepth 1 -printf '{_STAMP_FORMAT}' 2>/dev/null; true"
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
        return self._read_pieces(_quoted(name), "true", name)

    @override
    def write(self, name: str, data: bytes, mode: int | None = None) -> None:
        parent, part = posixpath.dirname(name), _part_beside(name)
        begin = f"mkdir -p -- {_quoted(parent or '.')} && : > {part}"
        for start in range(0, len(data), _SENT_BYTES):
            piece = base64.b64encode(data[start : start + _SENT_BYTES]).decode()
            begin = f"{begin} && printf %s {piece} | base64 -d >> {part}"
            if start + _SENT_BYTES < len(data):
                self.shell(begin)
                begin = "true"
        set_mode = _keep_mode(name, part) if mode is None else f"chmod {mode:o} {part}"
        self.shell(
            f"{{ {begin} && {{ {set_mode}; }} && [ $(stat -c %s {part}) = {len(data)} ]"
            f" && mv -fT -- {part} {_quoted(name)}; }} || {{ rm -f {part}; false; }}"
        )

    @override
    def copy(self, source: str, destination: str) -> None:
        part = _part_beside(destination)
        self.shell(
            f"{{ mkdir -p -- {_quoted(posixpath.dirname(destination) or '.')}"
            f" && cat -- {_quoted(source)} > {part} && {_keep_mode(destination, part)}"
            f" && mv -fT -- {part} {_quoted(destination)}; }} || {{ rm -f {part}; false; }}"
        )

    @override
    def link(self, name: str, target: str) -> None:
        parent = _quoted(posixpath.dirname(name) or ".")
        self.shell(f"mkdir -p -- {parent} && ln -sfnT -- {shlex.quote(target)} {_quoted(name)}")

    @override
    def make_directory(self, name: str) -> None:
        self.shell(f"mkdir -p -- {_quoted(name)}")

    @override
    def delete(self, name: str) -> None:
        quoted = _quoted(name)
        self.shell(
            f"if [ -d {quoted} ] && [ ! -L {quoted} ]; then rmdir -- {quoted} || true; else rm -f -- {quoted}; fi"
        )

    def shell(self, script: str) -> bytes:
        """Run a few lines in the workspace, and return what they write.

        Raises:
            WorkspaceError: if they fail, with their message.
            WorkspaceLostError: if the server's bash does not answer at all.
        """
        mark = f"M{self._calls}x{secrets.token_hex(4)}"
        error = f"/tmp/{mark}"  # noqa: S108 - of the sandbox
        # The mark is put together there, so that a shell that echoes the command does not seem to answer.
        command = (
            f'( m={mark[:3]}; m="${{m}}{mark[3:]}"; printf %s: "$m";'
            f" (cd {shlex.quote(self.root)} && {script}) 2>{error}"
            f" | base64 -w0; s=${{PIPESTATUS[0]}}; printf ':%d:' \"$s\"; head -c 500 {error} | base64 -w0;"
            f' printf ":%s\\n" "$m"; rm -f {error} )'
        )
        for _again in range(_TRIES):  # what handles files may be done again
            with contextlib.suppress(OutcomeUnknownError):
                result = self.bash(command, TIMEOUT_S)
                if not result.interrupted:
                    break
        else:
            raise WorkspaceError("the server was stopped each time that this was called")
        answer = re.search(rf"{mark}:([\w+/=]*):(\d+):([\w+/=]*):{mark}", result.text)
        if answer is None:
            kind = WorkspaceError if result.text.strip() else WorkspaceLostError
            raise kind(f"the server's bash did not answer as it should: {result.text.strip()[-300:]!r}")
        if answer[2] != "0":
            message = base64.b64decode(answer[3]).decode(errors="replace").strip().rpartition("bash: ")[2]
            raise WorkspaceError(f"it failed in the session: {message or 'exit status ' + answer[2]}")
        return base64.b64decode(answer[1])

    def bash(self, command: str, timeout_s: float) -> ToolResult:
        """Call the tool ``bash``, with the time limit if the tool takes one."""
        self._calls += 1
        arguments: dict[str, object] = {"command": command}
        if "timeout" in self._session.tools.get("bash", {}).get("properties", {}):
            arguments["timeout"] = timeout_s
        return self._session.call("bash", arguments)

    def _output_of(self, command: str) -> bytes:
        """Return all that a command writes, by way of a file there if it is much."""
        file = f"/tmp/mlab-agent-{secrets.token_hex(6)}"  # noqa: S108 - of the sandbox
        remove = f"if [ $(stat -c %s {file}) -le {RECEIVED_BYTES} ]; then rm {file}; fi"
        data = self._read_pieces(file, f"{{ {command}; }} > {file}", "a file", remove)
        if len(data) > RECEIVED_BYTES:
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
        head = f"sha256sum < {file} | head -c 64 && stat -c %s {file} && head -c {RECEIVED_BYTES} {file}"
        line, _end, data = self.shell(f"{before} && {head} && {after}").partition(b"\n")
        digest, size = line[:64].decode(), int(line[64:])
        while len(data) < size:
            piece = self.shell(f"tail -c +{len(data) + 1} {file} | head -c {RECEIVED_BYTES}")
            if not piece:
                break
            data += piece
        if hashlib.sha256(data).hexdigest() != digest:
            raise WorkspaceError(f"{label} changed while it was read")
        return data


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
    return shlex.quote(f"./{name}")


def _part_beside(name: str) -> str:
    """Return the quoted name of a new file in the directory of another one."""
    return _quoted(posixpath.join(posixpath.dirname(name), f".mlab-agent-{secrets.token_hex(6)}"))


def _keep_mode(name: str, part: str) -> str:
    return f"if [ -e {_quoted(name)} ]; then chmod --reference={_quoted(name)} {part}; fi"
