"""A workspace in a session of an ORS server: files and scripts through its tool ``bash``, scores through ``answer``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from mlab_agent.workspaces.files import MIB, WorkspaceError, WorkspaceLostError
from mlab_agent.workspaces.ors_files import OrsFiles
from mlab_agent.workspaces.ors_session import EpisodeFinishedError, OrsSession, OutcomeUnknownError
from mlab_agent.workspaces.shell_workspace import ShellWorkspace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from mlab_agent.waits import Waits
    from mlab_agent.workspaces.ors_record import ToolResult

_FINAL: Mapping[str, object] = {"get_final_score": True}
_FINAL_TRIES = 3


class OrsWorkspace(ShellWorkspace):
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
        waits: Waits | None = None,
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
            waits: get the time in which the server was away.

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
            waits=waits,
        )
        self.instructions = self._session.prompt
        self.gives_scores = "answer" in self._session.tools
        self.final_text = ""
        """The scorer's message on the final score."""
        self._handed_in()  # before anything else is asked for: the server may still be scoring it
        files = OrsFiles(self._session)
        super().__init__(
            files,
            python=python or "python3" if self.finished else files.program(python),
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
