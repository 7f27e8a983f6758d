"""A workspace in an Inspect sandbox, with the scores of Inspect or of a session of re-bench."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from mlab_agent.agent import RunStopped
from mlab_agent.workspaces.files import MIB, WorkspaceError
from mlab_agent.workspaces.shell import ShellWorkspace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from re_bench_inspect.mlab.answers import Answer, Answered
    from re_bench_inspect.mlab.files import InspectFiles
    from re_bench_inspect.mlab.loop_calls import LoopCalls


class InspectWorkspace(ShellWorkspace):
    """A directory of a sandbox. Scores can be asked for where there is an ``answer``."""

    files: InspectFiles
    stopped_by = "The sandbox"

    def __init__(
        self,
        files: InspectFiles,
        loop: LoopCalls,
        *,
        answer: Answer | None,
        scores: bool,
        hand_in: Callable[[str], Awaitable[None]],
        state: Path,
        python: str | None = None,
        read_only: Sequence[str] = (),
    ) -> None:
        """Open a workspace.

        Args:
            files: of the sandbox.
            loop: calls ``answer`` and ``hand_in``.
            answer: gives scores, and ends the episode; None where there are none.
            scores: whether scores can be asked for before the end.
            hand_in: called with the final answer.
            state: the directory of the run, on this side.
            python: the interpreter of Python scripts in the sandbox; None for the first one of its path.
            read_only: names or patterns of files and directories that must stay as they are.

        Raises:
            WorkspaceError: if there is no such interpreter.
        """
        self._loop = loop
        self._answer = answer
        self._hand_in = hand_in
        self.gives_scores = scores and answer is not None
        super().__init__(
            files,
            python=files.program(python),
            read_only=read_only,
            state=state,
            read_limit=8 * MIB,
            snapshot_limit=0,
            snapshot_excludes=(),
        )

    @override
    def score(self) -> str | None:
        answer = self._answer
        if answer is None or not self.gives_scores:
            return None
        return self._answered(self._loop.call(lambda: answer(final=False), WorkspaceError)).text

    @override
    def finish(self, answer: str) -> None:
        """Hand the answer in, and have a session of re-bench give its final score.

        Raises:
            WorkspaceError: if the episode cannot be ended, or Inspect has ended the sample: it scores by itself then.
        """
        try:
            self._loop.call(lambda: self._hand_in(answer))
            if self._answer is not None:
                self._end(self._answer)
        except RunStopped as stopped:
            raise WorkspaceError(f"the sample is over: {stopped}") from None
        self.finished = True

    def _end(self, answer: Answer) -> None:
        result = self._answered(self._loop.call(lambda: answer(final=True), WorkspaceError))
        if not result.finished:
            raise WorkspaceError(f"there is no final score: {result.text[-500:]}")
        self.final = result.metadata

    def _answered(self, result: Answered) -> Answered:
        if result.reward is not None:
            self.rewards.append(result.reward)
        self.finished = self.finished or result.finished
        return result

    @override
    def close(self) -> None:
        """Do nothing: the sandbox is Inspect's."""
