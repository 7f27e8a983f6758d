"""A workspace in a session of an ORS server: files and scripts through its tool ``bash``, scores through ``answer``."""

from __future__ import annotations

import secrets as random
import shlex
import time
from typing import TYPE_CHECKING

from typing_extensions import override

from mlab_agent.truncate import truncated_file
from mlab_agent.workspaces.base import ScriptResult, Workspace
from mlab_agent.workspaces.files import MIB, WorkspaceError, WorkspaceLostError
from mlab_agent.workspaces.live_output import printable
from mlab_agent.workspaces.ors_files import RECEIVED_BYTES, TIMEOUT_S, OrsFiles
from mlab_agent.workspaces.ors_session import EpisodeFinishedError, OrsSession, OutcomeUnknownError
from mlab_agent.workspaces.script_outputs import KEPT_OUTPUTS, OUTPUT_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from mlab_agent.workspaces.ors_record import ToolResult

_FINAL: Mapping[str, object] = {"get_final_score": True}
_FINAL_TRIES = 3
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


class OrsWorkspace(Workspace):
    """A session. It has scores if the server has the tool ``answer``."""

    files: OrsFiles

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
        python: str | None = None,
        read_only: Sequence[str] = (),
        snapshot_excludes: Sequence[str] = (),
        snapshot_limit: int = 2 * MIB,
        wait_s: float = 0.0,
        report: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """Open a session; with ``state``, join the one of a process that was killed, if the server still has it.

        Args:
            url: the server's.
            task: the task's id.
            environment: its name on the server.
            split: the split that the task is in.
            token: the server's, if it wants one.
            secrets: of the session, such as ``openai_api_key`` for a task with a model.
            state: a local directory for the session's id and copies of read-only files.
            python: the interpreter of Python scripts in the session; None for the first one of its path.
            read_only: names or patterns of files and directories that must stay as they are.
            snapshot_excludes: names or patterns of what snapshots leave out.
            snapshot_limit: bytes of the longest file in a snapshot.
            wait_s: how long a call waits for a server that does not answer.
            report: called with a sentence when the server goes away and comes back.

        Raises:
            WorkspaceError: if there is no session, or no such interpreter in it.
        """
        record = state / "session.json" if state else None
        self._session = OrsSession(
            url,
            task,
            environment=environment,
            split=split,
            token=token,
            secrets=secrets or {},
            record=record,
            wait_s=wait_s,
            report=report,
        )
        self.instructions = self._session.prompt
        self.gives_scores = "answer" in self._session.tools
        self.final_text = ""
        """The scorer's message on the final score."""
        self._handed_in()  # before anything else is asked for: the server may still be scoring it
        files = OrsFiles(self._session)
        super().__init__(
            files,
            python=python or "python3" if self.finished else _interpreter(files, python),
            read_only=() if self.finished else read_only,
            copies=state / "read-only" if state else None,
            copy_limit=MIB,
            copies_limit=64 * MIB,
            read_limit=8 * MIB,
            snapshot_limit=snapshot_limit,
            snapshot_excludes=snapshot_excludes,
        )
        if self.finished:
            self.finish("")

    @property
    def finished(self) -> bool:  # type: ignore[override]
        """Whether the episode has ended, by an answer or by the server."""
        return self._session.finished

    @property
    def joined(self) -> bool:
        """Whether this is the session of an earlier process, with its workspace and attempts."""
        return self._session.joined

    @property
    def session_id(self) -> str:
        """The session's id, which gives access to it."""
        return self._session.sid

    @override
    def _run_command(self, name: str, command: Sequence[str], timeout_s: float) -> ScriptResult:
        files = f"{OUTPUT_DIRECTORY}/{int(self.files.shell(_NEXT_NUMBER).decode())}"
        mark = f"MLAB_AGENT_EXECUTION={random.token_hex(8)}"
        start = time.monotonic()
        result = self.files.bash(
            f"cd {shlex.quote(self.root)} && {mark} timeout -k 2 {timeout_s:.3f} {shlex.join(command)}"
            f" > {files}.stdout 2> {files}.stderr < /dev/null; s=$?; mkdir -p {OUTPUT_DIRECTORY};"
            f' echo "$s" > {files}.status; {_KILL_MARKED.format(mark=mark)}',
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
            notes.append(f"The server stopped it: {result.text.strip()[-300:]}")
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
            truncated_file(int(size), RECEIVED_BYTES, lambda at, count, file=file: self._read_part(file, at, count))  # type: ignore[misc]
            for file, size in zip(streams, sizes, strict=True)
        ]
        self.files.shell(f"rm -f {' '.join(streams)}")
        is_truncated = any(int(size) > RECEIVED_BYTES for size in sizes)
        return texts[0], texts[1], f"{files}.txt" if is_truncated else None

    def _show(self, stdout: str, stderr: str) -> None:
        """Show output after the script's end: the protocol brings nothing before."""
        for stream, text in (("stdout", stdout), ("stderr", stderr)):
            for line in text.splitlines() if self.show_output else ():
                assert self.show_output is not None
                self.show_output(stream, printable(line))

    def _read_part(self, file: str, offset: int, count: int) -> bytes:
        return self.files.shell(f"tail -c +{offset + 1} {file} | head -c {count}")

    @override
    def score(self) -> str | None:
        return self._answer({}).text if self.gives_scores else None

    @override
    def interrupted_score(self) -> str | None:
        call = self._session.last_answer
        if call is None or call.step != self.step or call.arguments:
            return None
        try:
            return self._scored(self._session.take_up(call)).text
        except WorkspaceLostError:
            raise
        except WorkspaceError as error:
            return (
                f"The agent was stopped while it waited for this score, and what came of it cannot be told: {error}. "
                "It was not asked for again, so that no attempt counts twice; ask for Score if it is needed."
            )

    @override
    def finish(self, answer: str) -> None:
        """End the episode with the final score; the text of the answer is for the trace alone.

        An episode ends once: where it is not known whether it has, this asks again, and the server refuses it then.

        Raises:
            WorkspaceError: if the server fails to score it.
        """
        del answer
        if self.final is not None or not self.gives_scores:
            self._session.finished = True
            return
        for _try in range(_FINAL_TRIES):
            try:
                result = self._final_score()
            except EpisodeFinishedError as error:
                self.final_text = str(error)
                return
            except OutcomeUnknownError as error:
                problem = str(error)
                continue
            if result.finished:
                self._session.finished, self.final, self.final_text = True, result.metadata, result.text
                return
            problem = result.text
        raise WorkspaceError(f"the server did not give a final score: {problem[-500:]}")

    def _final_score(self) -> ToolResult:
        result = self._handed_in()
        return self._scored(result) if result and result.finished else self._answer(_FINAL)

    def _handed_in(self) -> ToolResult | None:
        """Return the result of a final score that this process or an earlier one has asked for, if it can be known."""
        call = self._session.last_answer
        if call is None or call.arguments != _FINAL:
            return None
        try:
            return self._session.take_up(call)
        except WorkspaceLostError:
            raise
        except WorkspaceError:
            return None

    def _answer(self, arguments: Mapping[str, object]) -> ToolResult:
        return self._scored(self._session.call("answer", arguments, self.step))

    def _scored(self, result: ToolResult) -> ToolResult:
        if result.reward is not None:
            self.rewards.append(result.reward)
        return result

    @override
    def close(self) -> None:
        """End the session, unless it is to be left open."""
        self._session.close(left_open=self.left_open)


def _interpreter(files: OrsFiles, python: str | None) -> str:
    if python is None:
        return files.shell("command -v python || command -v python3 || echo python3").decode().split("\n")[0]
    program = files.shell(f"command -v {shlex.quote(python)} || true").decode().strip()
    if not program:
        raise WorkspaceError(f"the session has no program {python} to run Python scripts with")
    return program
