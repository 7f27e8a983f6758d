"""The environment ``rebench`` of the Open Reward Standard: one split, the tasks that are here, two tools."""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING, Any, ClassVar

from fastapi import HTTPException
from openreward.environments import Environment, Split, TextBlock, ToolOutput, tool
from pydantic import BaseModel, ConfigDict, Field

from re_bench.errors import ReBenchError, UsageError
from re_bench_environment.logs import log
from re_bench_environment.service import FullError, Service
from re_bench_environment.session import EndedError, Session
from re_bench_environment.verdict import Verdict, failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from re_bench_environment.shell import Output

__all__ = ["NAME", "SPLIT", "Answer", "Bash", "ReBench", "environment_of"]

NAME = "rebench"
SPLIT = "test"

_MOST_COMMAND = 1 << 20
_NO_TASK, _FULL, _FAILED = 404, 429, 500


class Bash(BaseModel):
    """The arguments of ``bash``."""

    model_config = ConfigDict(extra="forbid")

    command: str = Field(max_length=_MOST_COMMAND, description="the command, as one would type it into bash")
    timeout: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="seconds after which the command is stopped"
    )


class Answer(BaseModel):
    """The arguments of ``answer``."""

    model_config = ConfigDict(extra="forbid")

    get_final_score: bool = Field(
        default=False, description="true: end the episode with the final score of all attempts, this one included"
    )


class ReBench(Environment):
    """One session, as the protocol sees it. No tool raises: official clients give a session up that does."""

    service: ClassVar[Service]

    def __init__(self, task_spec: Mapping[str, Any] | None = None, secrets: Mapping[str, str] | None = None) -> None:
        """Begin a session at the task that ``task_spec`` names; it is quick, and nothing is made yet.

        Raises:
            HTTPException: if there is no such task, or no room for the session.
        """
        super().__init__(task_spec or {}, {})
        try:
            offer = self.service.offers.find(task_spec or {})
            self.session = Session(self.service, offer, secrets or {})
        except FullError as error:
            raise HTTPException(_FULL, str(error)) from None
        except UsageError as error:
            raise HTTPException(_NO_TASK, str(error)) from None

    @classmethod
    def name(cls) -> str:
        """Return ``rebench``."""
        return NAME

    @classmethod
    def list_splits(cls) -> Sequence[Split]:
        """Return the one split."""
        return [Split(name=SPLIT, type="test")]

    @classmethod
    def list_tasks(cls, split: str) -> Sequence[Mapping[str, Any]]:
        """Return the tasks; the server has checked that there is such a split."""
        del split
        return [offer.spec for offer in cls.service.offers.by_id.values()]

    async def setup(self) -> None:
        """Lay out the workspace.

        Raises:
            HTTPException: if that fails, which is what prompt and tools of this session then answer.
        """
        log.info("session_opening", session=self.session.name, task=self.session.offer.id)
        try:
            await self.session.open()
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is told that there is no session
            log.error("session_not_opened", session=self.session.name, why=_why(error))
            raise HTTPException(_FAILED, f"the session cannot be opened: {_in_words(error)}") from None
        log.info("session_opened", session=self.session.name, task=self.session.offer.id)

    async def teardown(self) -> None:
        """End the session, whatever it does."""
        await self.session.close()
        log.info("session_ended", session=self.session.name, attempts=self.session.attempts)

    async def get_prompt(self) -> list[TextBlock]:
        """Return the task's instructions and what the sandbox offers."""
        return [TextBlock(text=self.session.prompt())]

    @tool
    async def bash(self, params: Bash) -> ToolOutput:
        """Run a command in the workspace's shell. Directory, variables and background processes stay between calls."""
        return await _never_raising(self.session, _bash(self.session, params))

    @tool(exclusive=True)
    async def answer(self, params: Answer) -> ToolOutput:
        """Score the workspace as it is. With get_final_score, end the episode with the score of all attempts."""
        return await _never_raising(self.session, self.session.answer(final=params.get_final_score))


def environment_of(service: Service) -> type[ReBench]:
    """Return the environment of a server."""
    return type("ReBench", (ReBench,), {"service": service})


async def _bash(session: Session, params: Bash) -> Verdict:
    output, waited_s = await session.run(params.command, params.timeout)
    text = _shown(output)
    if waited_s >= 1:
        text += f"\n[the command waited {waited_s:.0f} s for the GPU, which was timing an attempt]"
    metadata = {
        "exit_status": output.status,
        "timed_out": output.timed_out,
        "seconds": round(output.seconds, 3),
        "waited_s": round(waited_s, 3),
        "whole": str(output.whole) if output.whole is not None else None,
    }
    return Verdict(text, metadata=metadata)


def _shown(output: Output) -> str:
    """Return the output and, always, how the command ended."""
    if output.timed_out:
        end = f"stopped at its time limit, after {output.seconds:.0f} s"
    elif output.status is None:
        end = "the shell ended"
    else:
        end = f"exit status {output.status}"
    gap = "" if not output.text or output.text.endswith("\n") else "\n"
    return f"{output.text}{gap}[{end}]"


async def _never_raising(session: Session, doing: Awaitable[Verdict]) -> ToolOutput:
    try:
        verdict = await doing
    except EndedError as error:
        verdict = failure(str(error))
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a leaked cancellation hangs the caller
        log.error("tool_failed", session=session.name, why=_why(error))
        verdict = failure(f"This failed on the server's side: {_in_words(error)}")
    return ToolOutput(
        blocks=[TextBlock(text=verdict.text)],
        metadata=verdict.metadata,
        reward=verdict.reward,
        finished=verdict.finished,
    )


def _in_words(error: BaseException) -> str:
    """Return what a client may read of an error: all of ours, of others the class."""
    return str(error) if isinstance(error, ReBenchError) else type(error).__name__


def _why(error: BaseException) -> str:
    if isinstance(error, ReBenchError):
        return str(error)
    return "".join(traceback.format_exception(error))[-4000:]
