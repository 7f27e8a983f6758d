"""The tools of a session: a shell that lasts, and scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspect_ai.scorer import score
from inspect_ai.solver._task_state import sample_state
from inspect_ai.tool import Tool, ToolError, tool

from re_bench.errors import ReBenchError
from re_bench_inspect.samples import current_session, record_attempts, report_wait
from re_bench_inspect.scorer import last_responses
from re_bench_server.responses import command_response

if TYPE_CHECKING:
    from re_bench_server.responses import ToolResponse

_MAX_COMMAND = 1 << 20


@tool(name="bash", parallel=False)
def bash() -> Tool:
    """Return the tool that runs commands in the session's shell, which lasts, unlike that of Inspect's own tool."""

    async def execute(command: str, timeout: float | None = None) -> str:  # noqa: ASYNC109 - the model's word
        """Run a command in the workspace's shell. Directory, variables and background processes stay between calls.

        Args:
            command: the command, as one would type it into bash
            timeout: seconds after which the command is stopped
        """
        if len(command) > _MAX_COMMAND:
            raise ToolError(f"the command has {len(command)} characters; write what is long to a file in pieces")
        if timeout is not None and not timeout > 0:
            raise ToolError(f"timeout must be more than 0 seconds, not {timeout}")
        session = current_session()
        try:
            response = command_response(*await session.run(command, timeout))
        except ReBenchError as error:
            raise ToolError(str(error)) from None
        report_wait(response)
        return session.take_notice() + response.text

    return execute


@tool(name="answer", parallel=False)
def answer() -> Tool:
    """Return the tool that has the workspace scored; each score is an event of the transcript."""

    async def execute(get_final_score: bool = False) -> str:
        """Score the workspace as it is. With get_final_score, end the episode with the score of all attempts.

        Args:
            get_final_score: true: end the episode with the final score of all attempts, this one included
        """
        return (await score_workspace(final=get_final_score)).text

    return execute


async def score_workspace(*, final: bool) -> ToolResponse:
    """Score the sample's workspace as it is, as the tool ``answer`` does; the final score ends the episode.

    An attempt that does not end the episode is scored by the task's scorer, so that Inspect shows it where it was made.

    Raises:
        ToolError: if the episode has ended.
    """
    state, session = sample_state(), current_session()
    assert state is not None, "a session belongs to a sample"
    try:
        if not final:
            await score(state)
            return last_responses[session]
        response = await session.answer(final=True)
    except ReBenchError as error:
        raise ToolError(str(error)) from None
    report_wait(response)
    await record_attempts(state.store, session)
    state.completed = response.finished
    return response
