"""A workspace in an Inspect sandbox: its files, its scripts, and the scores of Inspect or of a session of re-bench."""

from __future__ import annotations

import base64
import contextlib
import math
import posixpath
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio
from inspect_ai.scorer import score
from inspect_ai.scorer._score import _scorers
from inspect_ai.tool import ToolError
from inspect_ai.util import OutputLimitExceededError
from typing_extensions import override

from mlab_agent.agent import RunStopped
from mlab_agent.workspaces.files import MIB, WorkspaceError
from mlab_agent.workspaces.shell import TIMEOUT_S, CommandEnd, ShellFiles, ShellWorkspace
from re_bench_inspect.episode import current_session, score_workspace, session_of_sample

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from inspect_ai.agent import AgentState
    from inspect_ai.util import ExecResult, SandboxEnvironment

    from re_bench_inspect.mlab.loop import LoopCalls

T = TypeVar("T")

_CLEANUP_S = 10
_LONGEST_ARGUMENT = 100_000  # bytes; Linux takes 128 KiB
_REFUSALS = (
    TimeoutError,
    PermissionError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    UnicodeError,
    OutputLimitExceededError,
)
"""What a sandbox raises where a single operation cannot be done."""
_UNSCORED = frozenset({"error", "interrupted"})


class InspectFiles(ShellFiles):
    """The files below a directory of a sandbox: contents by its file functions, everything else by a shell in it."""

    received_bytes = 4 * MIB  # a third more in base64; sandboxes return 10 MiB of output

    def __init__(
        self,
        sandbox: SandboxEnvironment,
        loop: LoopCalls,
        directory: str | None = None,
        refusals: tuple[type[Exception], ...] = (),
    ) -> None:
        """Open the directory.

        Args:
            sandbox: where it is.
            loop: calls the sandbox's functions.
            directory: absolute, or below that of the sample; None for that one.
            refusals: further exceptions that are shown to the model; all others end the sample.

        Raises:
            WorkspaceError: if the sandbox has no such directory, or lacks a program that is needed.
        """
        self._sandbox, self._loop, self._directory = sandbox, loop, directory
        self._refusals: tuple[type[Exception], ...] = (*_REFUSALS, *refusals)
        self.root = self.shell("pwd -P && find /dev/null -printf '' && realpath -mz . > /dev/null").decode().strip()

    @override
    def shell(self, script: str) -> bytes:
        move = f"cd {shlex.quote(self.root)} && " if self.root != "." else ""
        command = f"({move}{script}) | base64 -w0; exit ${{PIPESTATUS[0]}}"
        done = self._call(lambda: self._bash(command, TIMEOUT_S))
        if not done.success:
            message = done.stderr.strip().rpartition("bash: ")[2][-500:]
            raise WorkspaceError(f"it failed in the sandbox: {message or f'exit status {done.returncode}'}")
        return base64.b64decode(done.stdout)

    @override
    def run(self, command: str, cleanup: str, timeout_s: float) -> CommandEnd:
        async def run() -> CommandEnd:
            ended = False
            try:
                done = await self._bash(f"{command}; {cleanup}", timeout_s, shown=True)
                ended = True
            except TimeoutError as error:
                return CommandEnd(str(error) or "the time is over")
            finally:
                if not ended:  # the sandbox may have ended the shell alone
                    with (
                        anyio.CancelScope(shield=True),
                        anyio.move_on_after(_CLEANUP_S),
                        contextlib.suppress(Exception),
                    ):
                        await self._bash(cleanup, _CLEANUP_S)
            return CommandEnd(f"{done.stdout}{done.stderr}")

        return self._call(run)

    @override
    def read(self, name: str) -> bytes:
        return self._call(lambda: self._sandbox.read_file(posixpath.join(self.root, name), text=False))

    @override
    def _send(self, part: str, data: bytes, begin: str) -> str:
        self.shell(begin)
        self._call(lambda: self._sandbox.write_file(posixpath.join(self.root, part), data))
        return "true"

    def _call(self, function: Callable[[], Awaitable[T]]) -> T:
        try:
            return self._loop.call(function, *self._refusals)
        except self._refusals as error:
            raise WorkspaceError(f"it failed in the sandbox: {type(error).__name__}: {error}") from None

    async def _bash(self, command: str, timeout_s: float, *, shown: bool = False) -> ExecResult[str]:
        """Run a command; only one that is ``shown`` is an event of the transcript by itself."""
        hidden = getattr(self._sandbox, "no_events", None)  # of what Inspect wraps sandboxes in
        script = command.encode(errors="surrogateescape")
        is_long = len(script) > _LONGEST_ARGUMENT
        with contextlib.nullcontext() if shown or hidden is None else hidden():
            return await self._sandbox.exec(
                ["bash", "-c", 'eval "$(cat)"' if is_long else command],
                input=script if is_long else None,
                cwd=self._directory,
                timeout=math.ceil(timeout_s),
                timeout_retry=False,
            )


@dataclass(frozen=True)
class Answered:
    """The response to a request for a score."""

    text: str
    """For the model."""
    reward: float | None = None
    finished: bool = False
    """Whether the episode has ended."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Answer(Protocol):
    """Gives the score of the workspace as it is; the ``final`` one ends the episode."""

    async def __call__(self, *, final: bool) -> Answered:
        """Return the score.

        Raises:
            WorkspaceError: if there is none, with a message for the model.
        """


def default_answer(state: AgentState, *, wanted: bool | None) -> tuple[Answer, bool]:
    """Return what gives scores in the sample that runs, and whether the model is to be offered it.

    Args:
        state: of the agent.
        wanted: whether it is to be, where there are scores; None: only those of a session of re-bench.
    """
    if session_of_sample() is not None:
        return _session_answer, wanted is not False

    async def task_answer(*, final: bool) -> Answered:
        if final:  # Inspect itself scores the end
            return Answered("The answer was submitted.", finished=True)
        values = [value.value for value in await score(state)]  # explanations may have the right answer
        numbers = [float(value) for value in values if isinstance(value, int | float)]
        text = "\n".join(f"Score: {value}" for value in values)
        return Answered(text or "There is no score.", numbers[0] if len(numbers) == len(values) == 1 else None)

    return task_answer, wanted is True and bool(_scorers.get(None))


async def _session_answer(*, final: bool) -> Answered:
    """Have the session of re-bench score its workspace.

    Raises:
        WorkspaceError: if it cannot.
    """
    try:
        response = await score_workspace(final=final)
    except ToolError as error:
        if current_session().record.state == "finished":
            return Answered(error.message, finished=True)
        raise WorkspaceError(error.message) from None
    is_score = response.metadata.get("status") not in _UNSCORED
    return Answered(response.text, response.reward if is_score else None, response.finished, response.metadata)


class InspectWorkspace(ShellWorkspace):
    """A directory of a sandbox, and its scores."""

    files: InspectFiles
    stopped_by = "The sandbox"

    def __init__(
        self,
        files: InspectFiles,
        loop: LoopCalls,
        *,
        answer: Answer,
        scores: bool,
        submit: Callable[[str], Awaitable[None]],
        state: Path,
        python: str | None = None,
        read_only: Sequence[str] = (),
    ) -> None:
        """Open a workspace.

        Args:
            files: of the sandbox.
            loop: calls ``answer`` and ``submit``.
            answer: gives scores, and ends the episode.
            scores: whether scores can be asked for before the end.
            submit: called with the final answer.
            state: the directory of the run, outside of the sandbox.
            python: the interpreter of Python scripts in the sandbox; None for the first one of its path.
            read_only: names or patterns of files and directories that must stay as they are.

        Raises:
            WorkspaceError: if there is no such interpreter.
        """
        self._loop, self._answer, self._submit = loop, answer, submit
        self.gives_scores = scores
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
        return self._ask(final=False).text if self.gives_scores else None

    @override
    def finish(self, answer: str) -> None:
        """Submit the answer, and have a session of re-bench give its final score.

        Raises:
            WorkspaceError: if the episode cannot be ended, or Inspect has ended the sample: it scores by itself then.
        """
        try:
            self._loop.call(lambda: self._submit(answer))
            result = self._ask(final=True)
        except RunStopped as stopped:
            raise WorkspaceError(f"the sample is over: {stopped}") from None
        if not result.finished:
            raise WorkspaceError(f"there is no final score: {result.text[-500:]}")
        self.final = result.metadata

    def _ask(self, *, final: bool) -> Answered:
        result = self._loop.call(lambda: self._answer(final=final), WorkspaceError)
        if result.reward is not None:
            self.rewards.append(result.reward)
        self.finished = self.finished or result.finished
        return result

    @override
    def close(self) -> None:
        """Do nothing: the sandbox is Inspect's."""
