"""The environment ``rebench`` of the Open Reward Standard: one split, the tasks that are here, two tools."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any, ClassVar

from fastapi import HTTPException
from openreward.environments import Environment, Split, TextBlock, ToolOutput, tool

from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import request_stop
from re_bench_environment.arguments import Answer, Bash  # noqa: TC001 - the SDK reads the tools' annotations
from re_bench_environment.logs import log
from re_bench_environment.middleware import request_time
from re_bench_environment.responses import ToolResponse, command_response, error_response, with_queue_time
from re_bench_environment.session import Session, SessionClosedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from re_bench_environment.app_state import AppState
    from re_bench_environment.catalog import ServedTask

NAME = "rebench"
SPLIT = "test"

_MAX_LOGGED = 4000
_NOT_FOUND, _TOO_MANY_REQUESTS, _SERVER_ERROR = 404, 429, 500


class TooManySessionsError(UsageError):
    """The server has as many sessions as its settings allow."""


class SessionRegistry:
    """The open sessions of a server, by name."""

    def __init__(self, app: AppState) -> None:
        """Begin without sessions; ``app`` is what they share."""
        self.app = app
        self.sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def create(self, served: ServedTask, secrets: Mapping[str, str]) -> Session:
        """Return a new session at a task.

        Raises:
            TooManySessionsError: if there are as many as there may be.
        """
        limit = self.app.settings.max_sessions
        with self._lock:  # the SDK creates sessions in threads
            if len(self.sessions) >= limit:
                raise TooManySessionsError(
                    f"this server holds {limit} sessions, its most (--max-sessions); try again when one has ended"
                )
            session = Session(self.app, served, secrets, lambda: self._remove(session))
            self.sessions[session.name] = session
        return session

    async def close(self) -> None:
        """End all sessions and everything that they share.

        Raises:
            Exception: the first that the end of a session raised, when all have ended.
        """
        self.app.stopping = True
        with request_stop():
            closing = [session.close() for session in list(self.sessions.values())]
            errors = [error for error in await asyncio.gather(*closing, return_exceptions=True) if error is not None]
            await self.app.stop_threads()
        await self.app.close()
        if errors:
            raise errors[0]

    def _remove(self, session: Session) -> None:
        self.sessions.pop(session.name, None)


class ReBench(Environment):
    """One session, as the protocol sees it. No tool raises: official clients close a session after an exception."""

    registry: ClassVar[SessionRegistry]

    def __init__(self, task_spec: Mapping[str, Any] | None = None, secrets: Mapping[str, str] | None = None) -> None:
        """Create a session at the task that ``task_spec`` names; it is quick, and nothing is laid out yet.

        Raises:
            HTTPException: if there is no such task, or the server has too many sessions.
        """
        super().__init__(task_spec or {}, {})
        try:
            served = self.registry.app.catalog.lookup(task_spec or {})
            self.session = self.registry.create(served, secrets or {})
        except TooManySessionsError as error:
            raise HTTPException(_TOO_MANY_REQUESTS, str(error)) from None
        except UsageError as error:
            raise HTTPException(_NOT_FOUND, str(error)) from None

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
        """Return the tasks; the SDK has checked that there is such a split."""
        del split
        return [served.spec for served in cls.registry.app.catalog.by_id.values()]

    async def setup(self) -> None:
        """Lay out the workspace.

        Raises:
            HTTPException: if that fails; prompt and tools of this session then answer with it.
        """
        log.info("session_opening", session=self.session.name, task=self.session.served.id)
        try:
            await self.session.open()
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is told that there is no session
            log.error("session_not_opened", session=self.session.name, reason=_logged(error))
            raise HTTPException(_SERVER_ERROR, f"the session cannot be opened: {_public_message(error)}") from None
        log.info("session_opened", session=self.session.name, task=self.session.served.id)

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
        return await _tool_output(self.session, _bash(self.session, params))

    @tool(exclusive=True)
    async def answer(self, params: Answer) -> ToolOutput:
        """Score the workspace as it is. With get_final_score, end the episode with the score of all attempts."""
        return await _tool_output(self.session, self.session.answer(final=params.get_final_score))


def environment_class(registry: SessionRegistry) -> type[ReBench]:
    """Return the environment of a server."""
    return type("ReBench", (ReBench,), {"registry": registry})


async def _bash(session: Session, params: Bash) -> ToolResponse:
    return command_response(*await session.run(params.command, params.timeout))


async def _tool_output(session: Session, responding: Awaitable[ToolResponse]) -> ToolOutput:
    """Wait for a tool's response; an exception becomes a response too."""
    queued_s = time.monotonic() - request_time.get()  # the SDK lets calls of one session wait for each other
    try:
        response = await responding
    except SessionClosedError as error:
        response = error_response(str(error))
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a leaked cancellation hangs the caller
        log.error("tool_failed", session=session.name, reason=_logged(error))
        response = error_response(f"This failed on the server's side: {_public_message(error)}")
    response = with_queue_time(response, queued_s)
    return ToolOutput(
        blocks=[TextBlock(text=response.text)],
        metadata=response.metadata,
        reward=response.reward,
        finished=response.finished,
    )


def _public_message(error: BaseException) -> str:
    """Return what a client may read of an error: the message of ours, of others the class."""
    return str(error) if isinstance(error, ReBenchError) else type(error).__name__


def _logged(error: BaseException) -> str:
    if isinstance(error, ReBenchError):
        return str(error)
    return "".join(traceback.format_exception(error))[-_MAX_LOGGED:]
