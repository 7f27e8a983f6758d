"""A home in a session of an ORS server: every file and every script goes through the server's tool ``bash``.

What is run there are a few lines of shell with the usual programs (coreutils, findutils), whose output comes back in
base64 between two marks: clients lose white space at the borders of what a server sends, and servers add remarks.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
import secrets as random
import shlex
import time
from typing import TYPE_CHECKING

from mlab_agent.homes import PRIVATE, Entry, Execution, HomeError, HomeLostError
from mlab_agent.homes.guarding import Guard
from mlab_agent.homes.ors_session import OrsSession, Said
from mlab_agent.homes.workspace import MIB, SKIPPED, Kind, Stamp, Workspace, matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["OrsHome"]

_PIECE = 20_000
"""Bytes that are asked for at a time: servers cut the middle out of longer outputs."""
_SENT = 400_000
"""Bytes that are sent at a time: commands have a longest length."""
_KINDS: Mapping[str, Kind] = {"f": "file", "d": "directory", "l": "link"}
_PRINTED = r"%y\0%s\0%m\0%i:%s:%T@:%C@\0%l\0%p\0"
_FIELDS = 6
_FINAL_TRIES = 3
_AFTER_S = 60.0
_TIMED_OUT = (124, 137)
_OUTPUTS = f"{PRIVATE}/outputs"
_KEPT_OUTPUTS = 20
_SIGNALS = range(129, 193)


class OrsHome(Workspace):
    """A session. It has scores if the server has the tool ``answer``."""

    def __init__(
        self,
        url: str,
        task: str,
        *,
        environment: str = "rebench",
        split: str = "test",
        token: str | None = None,
        secrets: Mapping[str, str] | None = None,
        state: Path | None = None,
        read_only: Sequence[str] = (),
        shown_chars: int = 20_000,
        left_out: Sequence[str] = (),
        snapshot_limit: int = 2 * MIB,
    ) -> None:
        """Open a session; with ``state``, join the one of a process that was killed, if the server still has it.

        Args:
            url: the server's.
            task: the task's id.
            environment: its name on the server.
            split: the split that the task is in.
            token: the server's, if it wants one.
            secrets: of the session, such as ``openai_api_key`` for a task with a model.
            state: a directory of ours, for the session's id and copies of read-only files.
            read_only: names or patterns of files and directories that must stay as they are.
            shown_chars: how much of stdout, and of stderr, is returned.
            left_out: what snapshots leave out.
            snapshot_limit: bytes of the longest file in a snapshot.

        Raises:
            HomeError: if there is no session.
        """
        super().__init__(read_only, 8 * MIB, snapshot_limit, left_out)
        kept = state / "session.json" if state else None
        self._session = OrsSession(
            url, task, environment=environment, split=split, token=token, secrets=secrets or {}, kept=kept
        )
        self.instructions: str | None = self._session.prompt
        self.gives_scores = "answer" in self._session.tools
        self.rewards: list[float] = []
        """The reward of each attempt, for whoever evaluates; the model is told the text alone."""
        self.final: Mapping[str, object] | None = None
        """The metadata of the final answer."""
        self.final_text = ""
        self._shown = shown_chars
        self._calls = 0
        self._looked: tuple[int, str, Stamp | None] = (-1, "", None)
        """The name that the last call has looked at."""
        self.root = "."
        self.root = self._do("pwd -P").decode().strip()
        self._python = self._do("command -v python || command -v python3 || echo python3").decode().split("\n")[0]
        self._guard = Guard(
            self, self._watched(), (state or _nowhere()) / "read-only", 0 if not state else MIB, 64 * MIB
        )

    @property
    def joined(self) -> bool:
        """Whether this is the session of a process before, with its workspace and attempts."""
        return self._session.joined

    def _watched(self) -> list[str]:
        if not self.read_only:
            return []
        every = self.scan(())
        names = [name for name in every if self.is_read_only(name) and every[name].kind != "directory"]
        return [name for name in names if not matches(name, (PRIVATE,))]

    def _resolve(self, path: str) -> str:
        # Most resolved names are looked at next, and each call takes a while.
        look = f'p=$(realpath -mz -- {shlex.quote(self._joined(path))} | base64 -w0); echo "$p"'
        printed = (
            "r=$(printf %s \"$p\" | base64 -d | tr -d '\\0'; echo .);"
            f" find -P \"${{r%.}}\" -maxdepth 0 -printf '{_PRINTED}'"
        )
        line, _end, rest = self._do(f"{look}; {printed} 2>/dev/null; true").partition(b"\n")
        absolute = base64.b64decode(line).decode(errors="surrogateescape").rstrip("\0")
        name = self._below(absolute, path)
        self._looked = (self._calls, name, next(iter(_stamps(rest).values()), None))
        return name

    def _plain(self, path: str) -> str:
        try:
            return self._below(posixpath.normpath(self._joined(path)), path)
        except HomeError:
            return self._resolve(path)

    def _joined(self, path: str) -> str:
        return posixpath.join(self.root, path)

    def _stat(self, name: str) -> Stamp | None:
        calls, looked, stamp = self._looked
        if looked == name and calls == self._calls:
            return stamp
        return self.stamps([name]).get(name)

    def stamps(self, names: Iterable[str]) -> dict[str, Stamp]:
        """See :class:`.workspace.Workspace`."""
        listed = "\0".join(f"./{name}" for name in names)
        if not listed:
            return {}
        loop = f"for f; do find -P \"$f\" -maxdepth 0 -printf '{_PRINTED}'; done 2>/dev/null"
        return _stamps(self._pieces(f"{_decoded(listed)} | xargs -0 sh -c {shlex.quote(loop)} sh; true"))

    def scan(self, left_out: Sequence[str]) -> dict[str, Stamp]:
        """See :class:`.workspace.Workspace`."""
        pruned = " -o ".join(f"-name {shlex.quote(each)}" for each in SKIPPED if each in left_out) or "-false"
        command = rf"find -P . -mindepth 1 \( {pruned} \) -prune -o -printf '{_PRINTED}' 2>/dev/null; true"
        return {name: stamp for name, stamp in _stamps(self._pieces(command)).items() if not matches(name, left_out)}

    def _entries(self, name: str) -> list[Entry]:
        command = f"find -P {_quoted(name)} -mindepth 1 -maxdepth 1 -printf '{_PRINTED}' 2>/dev/null; true"
        return [
            Entry(each.rpartition("/")[2], stamp.kind, stamp.size, self.is_read_only(each))
            for each, stamp in _stamps(self._pieces(command)).items()
        ]

    def fetch(self, name: str) -> bytes:
        """See :class:`.workspace.Workspace`."""
        return self._pieces(f"cat -- {_quoted(name)}", file=name)

    def put(self, name: str, data: bytes, mode: int | None = None) -> None:
        """See :class:`.workspace.Workspace`."""
        above = posixpath.dirname(name)
        part = posixpath.join(above, f".mlab-agent-{random.token_hex(6)}")
        begin = f"mkdir -p -- {_quoted(above or '.')} && : > {_quoted(part)}"
        for start in range(0, len(data), _SENT):
            piece = base64.b64encode(data[start : start + _SENT]).decode()
            add = f"printf %s {piece} | base64 -d >> {_quoted(part)}"
            if start + _SENT < len(data):
                self._do(f"{begin} && {add}")
                begin = "true"
            else:
                begin = f"{begin} && {add}"
        how = (
            f"chmod --reference={_quoted(name)} {_quoted(part)}" if mode is None else f"chmod {mode:o} {_quoted(part)}"
        )
        if mode is None:
            how = f"if [ -e {_quoted(name)} ]; then {how}; fi"
        self._do(
            f"{{ {begin} && {{ {how}; }} && [ $(stat -c %s {_quoted(part)}) = {len(data)} ]"
            f" && mv -fT -- {_quoted(part)} {_quoted(name)}; }} || {{ rm -f {_quoted(part)}; false; }}"
        )

    def _copy(self, source: str, destination: str) -> None:
        part = posixpath.join(posixpath.dirname(destination), f".mlab-agent-{random.token_hex(6)}")
        keep = f"if [ -e {_quoted(destination)} ]; then chmod --reference={_quoted(destination)} {_quoted(part)}; fi"
        self._do(
            f"{{ mkdir -p -- {_quoted(posixpath.dirname(destination) or '.')}"
            f" && cat -- {_quoted(source)} > {_quoted(part)}"
            f" && {keep} && mv -fT -- {_quoted(part)} {_quoted(destination)}; }} || {{ rm -f {_quoted(part)}; false; }}"
        )

    def link(self, name: str, target: str) -> None:
        """See :class:`.workspace.Workspace`."""
        above = _quoted(posixpath.dirname(name) or ".")
        self._do(f"mkdir -p -- {above} && ln -sfnT -- {shlex.quote(target)} {_quoted(name)}")

    def make_directory(self, name: str) -> None:
        """See :class:`.workspace.Workspace`."""
        self._do(f"mkdir -p -- {_quoted(name)}")

    def delete(self, name: str) -> None:
        """See :class:`.workspace.Workspace`."""
        quoted = _quoted(name)
        self._do(f"if [ -d {quoted} ] && [ ! -L {quoted} ]; then rmdir -- {quoted} || true; else rm -f -- {quoted}; fi")

    def execute(self, script: str, arguments: Sequence[str], timeout_s: float) -> Execution:
        """See :class:`mlab_agent.homes.Home`."""
        name = self.name(script)
        self._check_file(name, script, limited=False)
        if any("\0" in each for each in arguments):
            raise HomeError("an argument cannot have a NUL character")
        program = shlex.join([*self._program(name), *arguments])
        number = int(self._do(_NUMBERED).decode())
        files = f"{_OUTPUTS}/{number}"
        mark = f"MLAB_AGENT_EXECUTION={random.token_hex(8)}"
        began = time.monotonic()
        self._calls += 1
        said = self._bash(
            f"cd {shlex.quote(self.root)} && {mark} timeout -k 2 {timeout_s:.3f} {program}"
            f" > {files}.stdout 2> {files}.stderr < /dev/null; s=$?; mkdir -p {_OUTPUTS};"
            f' echo "$s" > {files}.status; {_ENDING.format(mark=mark)}',
            timeout_s + _AFTER_S,
        )
        seconds = time.monotonic() - began
        status = self._do(f"cat {files}.status 2>/dev/null || true; rm -f {files}.status").decode().strip()
        timed_out = not status or (int(status) in _TIMED_OUT and seconds >= timeout_s)
        notes = self._guard.put_back()
        stdout, stderr, cut = self._collected(files)
        if not status:
            notes.append(f"The server stopped it: {said.text.strip()[-300:]}")
        code = None if timed_out else int(status)
        code = 128 - code if code in _SIGNALS and code is not None else code
        return Execution(stdout, stderr, code, timed_out, seconds, f"{files}.txt" if cut else None, tuple(notes))

    def _program(self, name: str) -> list[str]:
        if name.endswith(".py"):
            return [self._python, "-u", f"./{name}"]
        if name.endswith((".sh", ".bash")):
            return ["bash", f"./{name}"]
        stamp = self._stat(name)
        if stamp and stamp.mode & 0o100:
            return [f"./{name}"]
        raise HomeError(
            f"{name} cannot be run: it is neither a Python file (.py) nor a shell script (.sh), and not executable"
        )

    def _collected(self, files: str) -> tuple[str, str, bool]:
        """Put both outputs into one file, and return beginning and end of each."""
        joined = (
            f"{{ echo '=== stdout ==='; cat {files}.stdout; printf '\\n=== stderr ===\\n'; cat {files}.stderr; echo; }}"
        )
        made = f"touch {files}.stdout {files}.stderr; {joined} > {files}.txt"
        sizes = self._do(f"{made}; stat -c %s {files}.stdout {files}.stderr").decode().split()
        texts = [
            self._ends(f"{files}.{name}", int(size)) for name, size in zip(("stdout", "stderr"), sizes, strict=True)
        ]
        self._do(f"rm -f {files}.stdout {files}.stderr")
        return texts[0], texts[1], any(int(size) > self._shown for size in sizes)

    def _ends(self, file: str, size: int) -> str:
        if size == 0:
            return ""
        if size <= self._shown:
            return self._pieces(f"cat {file}").decode(errors="replace")
        half = self._shown // 2
        head = self._pieces(f"head -c {half} {file}").decode(errors="replace")
        tail = self._pieces(f"tail -c {half} {file}").decode(errors="replace")
        return f"{head}\n[... {size - 2 * half} bytes left out ...]\n{tail}"

    def score(self) -> str | None:
        """Have the server score the workspace."""
        if not self.gives_scores:
            return None
        return self._answer({}).text

    def finish(self, answer: str) -> None:
        """End the episode with the final score; what the answer says is for the trace alone.

        Raises:
            HomeError: if the server fails to score it.
        """
        del answer
        if self.finished or not self.gives_scores:
            self.finished = True
            return
        for _try in range(_FINAL_TRIES):
            said = self._answer({"get_final_score": True})
            if said.finished:
                self.finished, self.final, self.final_text = True, said.metadata, said.text
                return
        raise HomeError(f"the server did not give a final score: {said.text[-500:]}")

    def _answer(self, given: Mapping[str, object]) -> Said:
        said = self._session.call("answer", given)
        if said.reward is not None:
            self.rewards.append(said.reward)
        return said

    def close(self) -> None:
        """End the session."""
        self._session.close()

    def _pieces(self, command: str, file: str = "") -> bytes:
        """Return all that a command writes, by way of a file there if it is much."""
        kept = f"/tmp/mlab-agent-{random.token_hex(6)}"  # noqa: S108 - of the sandbox
        source = _quoted(file) if file else kept
        make = "true" if file else f"{{ {command}; }} > {kept}"
        look = f"sha256sum < {source} | head -c 64 && stat -c %s {source} && head -c {_PIECE} {source}"
        first = self._do(
            f"{make} && {look} && if [ -e {kept} ] && [ $(stat -c %s {kept}) -le {_PIECE} ]; then rm {kept}; fi"
        )
        line, _end, data = first.partition(b"\n")
        digest, size = line[:64].decode(), int(line[64:])
        while len(data) < size:
            piece = self._do(f"tail -c +{len(data) + 1} {source} | head -c {_PIECE}")
            if not piece:
                break
            data += piece
        if size > _PIECE and not file:
            self._do(f"rm -f {kept}")
        if hashlib.sha256(data).hexdigest() != digest:
            raise HomeError(f"{file or 'a file'} changed while it was read")
        return data

    def _do(self, script: str) -> bytes:
        """Run a few lines in the workspace, and return what they write.

        Raises:
            HomeError: if they fail, with their words.
        """
        self._calls += 1
        mark = f"M{self._calls}x{random.token_hex(4)}"
        error = f"/tmp/{mark}"  # noqa: S108 - of the sandbox
        # The mark is put together there, so that a shell that echoes the command does not seem to answer.
        said = self._bash(
            f'( m={mark[:3]}; m="${{m}}{mark[3:]}"; printf %s: "$m";'
            f" (cd {shlex.quote(self.root)} && {script}) 2>{error}"
            f" | base64 -w0; s=${{PIPESTATUS[0]}}; printf ':%d:' \"$s\"; head -c 500 {error} | base64 -w0;"
            f' printf ":%s\\n" "$m"; rm -f {error} )',
            _AFTER_S,
        )
        found = re.search(rf"{mark}:([\w+/=]*):(\d+):([\w+/=]*):{mark}", said.text)
        if found is None:
            msg = f"the server's bash did not answer as it should: {said.text.strip()[-300:]!r}"
            raise HomeLostError(msg) if not said.text.strip() else HomeError(msg)
        if found[2] != "0":
            words = base64.b64decode(found[3]).decode(errors="replace").strip().rpartition("bash: ")[2]
            raise HomeError(f"it failed in the session: {words or 'exit status ' + found[2]}")
        return base64.b64decode(found[1])

    def _bash(self, command: str, timeout_s: float) -> Said:
        given: dict[str, object] = {"command": command}
        if "timeout" in self._session.tools.get("bash", {}).get("properties", {}):
            given["timeout"] = timeout_s
        return self._session.call("bash", given)


_NUMBERED = (
    f"mkdir -p {_OUTPUTS} && n=$(ls {_OUTPUTS} | sed -n 's/^\\([0-9][0-9]*\\)\\..*/\\1/p' | sort -n | tail -n 1)"
    f" && n=$((${{n:-0}} + 1)) && ls {_OUTPUTS} | sort -n | head -n -{_KEPT_OUTPUTS - 1}"
    f' | while read -r f; do rm -f "{_OUTPUTS}/$f"; done; echo "$n"'
)
_ENDING = (
    'for e in /proc/[0-9]*/environ; do if grep -qz "^{mark}$" "$e" 2>/dev/null; then p=${{e#/proc/}};'
    ' kill -9 "${{p%/environ}}" 2>/dev/null; fi; done; true'
)


def _stamps(printed: bytes) -> dict[str, Stamp]:
    fields = printed.decode(errors="surrogateescape").split("\0")[:-1]
    found = {}
    for start in range(0, len(fields), _FIELDS):
        kind, size, mode, changed, target, path = fields[start : start + _FIELDS]
        told: Kind = _KINDS.get(kind, "other")
        about = "" if told == "directory" else changed
        found[path.removeprefix("./")] = Stamp(told, int(size), int(mode, 8), about, target)
    return found


def _quoted(name: str) -> str:
    return shlex.quote(f"./{name}")


def _decoded(text: str) -> str:
    return f"printf %s {base64.b64encode(text.encode(errors='surrogateescape')).decode()} | base64 -d"


def _nowhere() -> Path:
    from pathlib import Path as Real  # noqa: PLC0415

    return Real("/nonexistent")
