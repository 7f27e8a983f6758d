"""A session of an ORS server, through the official client; the session of a killed process is joined again.

What a restart of the server, or of the agent, leaves open is settled by the client's id of the call (``task_id``): the
same call is asked for with the same id, and the server answers with its result, or says that it was interrupted. A call
whose id had not arrived yet is never sent a second time here.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import os
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import aiohttp
import tenacity
from openreward.api._session.http import AuthenticationError, _RemoteSSEError, resumable_sse
from openreward.api.errors import HeartbeatTimeoutError, MaxRetriesError, SessionTerminatedError

from mlab_agent.clock import Waits
from mlab_agent.workspaces.files import WorkspaceError, WorkspaceLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from pathlib import Path

_PING_S = 10
_NO_KEY = "none"
_GONE = frozenset({404, 410})  # of a session
_NOT_NOW = frozenset({429, 503})  # nothing was begun
_BROKEN_GATEWAYS = frozenset({502, 504})
_LONGEST_WAIT_S = 5.0


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool call."""

    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    reward: float | None = None
    finished: bool = False

    @classmethod
    def of(cls, output: Mapping[str, Any]) -> Self:
        """Return the result of an output of the protocol."""
        text = "".join(block["text"] for block in output["blocks"] if block.get("type", "text") == "text")
        return cls(text, output.get("metadata") or {}, output.get("reward"), bool(output.get("finished")))

    @property
    def interrupted(self) -> bool:
        """Whether the server ended while it carried out the call."""
        return self.metadata.get("status") == "interrupted"


@dataclass
class Call:
    """A call of a tool."""

    tool: str
    arguments: dict[str, Any]
    step: str | None = None
    """The step of the run that it belongs to; None if it may be made again."""
    task_id: str | None = None
    """The server's id of the call, once it has confirmed it."""
    result: ToolResult | None = None


class SessionRecord:
    """A file that this user alone can read: with a session's id anybody could use the session."""

    def __init__(self, path: Path, origin: Mapping[str, str]) -> None:
        """Read the record if there is one of the same origin.

        Args:
            path: the file.
            origin: the task and the environment; the server may be at another address by now.
        """
        self._path = path
        self._origin = dict(origin)
        self._lock = threading.Lock()  # the client's thread writes, too
        self.sid: str | None = None
        self.call: Call | None = None
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        if {name: record.get(name) for name in self._origin} == self._origin:
            self.sid = record.get("sid")
            self.call = _call(record.get("call"))

    def begin(self, sid: str) -> None:
        """Keep the id of a new session, which has no calls yet."""
        self.sid, self.call = sid, None
        self._write()

    def keep(self, call: Call) -> None:
        """Keep the present state of a call."""
        self.call = call
        self._write()

    def remove(self) -> None:
        """Remove the file: the session has ended."""
        self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        with self._lock:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            part = self._path.with_suffix(".part")
            part.unlink(missing_ok=True)
            call = dataclasses.asdict(self.call) if self.call else None
            file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(file, "w", encoding="utf-8") as record:  # noqa: PTH123 - a descriptor
                json.dump({**self._origin, "sid": self.sid, "call": call}, record)
            part.replace(self._path)


def _call(record: dict[str, Any] | None) -> Call | None:
    if not record:
        return None
    result = record.pop("result")
    return Call(**record, result=ToolResult(**result) if result else None)


class OutcomeUnknownError(WorkspaceError):
    """A call may have been carried out or not, and the server cannot say."""


class EpisodeFinishedError(WorkspaceError):
    """The episode has ended; the server takes no more calls."""


class _AwayError(Exception):
    """The server does not answer; the call can be repeated without harm."""


class OrsSession:
    """One session. The official client pings it, so that it stays while the agent thinks."""

    def __init__(
        self,
        url: str,
        task: str,
        *,
        environment: str,
        split: str,
        token: str | None,
        secrets: Mapping[str, str],
        record: Path,
        wait_s: float = 0.0,
        report: Callable[[str], None] = lambda _text: None,
        waits: Waits | None = None,
    ) -> None:
        """Open a session, or join the one of the file ``record``, if the server still has it.

        Args:
            url: the server's.
            task: the task's id.
            environment: its name on the server.
            split: the split that the task is in.
            token: the server's, if it wants one.
            secrets: of the session.
            record: the file that the session's id is kept in.
            wait_s: how long a call waits for a server that does not answer.
            report: called with a sentence when the server goes away and comes back.
            waits: get the time in which the server was away.

        Raises:
            WorkspaceError: if there is no such server or task, or the server refuses.
        """
        os.environ.setdefault("OPENREWARD_DISABLE_UPDATE_CHECK", "1")
        logging.getLogger("openreward").setLevel(logging.CRITICAL)  # its warnings have the session's id
        from openreward import OpenReward  # noqa: PLC0415 - after the setting

        self._client = OpenReward(api_key=token or _NO_KEY)  # without one it would send $OPENREWARD_API_KEY
        self._url = url
        self._wait_s = wait_s
        self._report = report
        self._waits = waits or Waits()
        self._record = SessionRecord(record, {"task": task, "environment": environment})
        self._lost = False
        self._away_since: float | None = None
        self.finished = False  # the episode
        try:
            self._open(task, environment, split, dict(secrets) or None)
        except BaseException as error:
            self._client.environments.close()
            if isinstance(error, WorkspaceError) or not isinstance(error, Exception):
                raise
            raise WorkspaceError(f"there is no session at {url}: {self._one_line(error)}") from None

    @property
    def sid(self) -> str:
        """The session's id, which gives access to it."""
        return str(self._session.sid)

    @property
    def last_answer(self) -> Call | None:
        """The last call of ``answer`` that was recorded, also by a killed process that had this session."""
        return self._record.call

    def _open(self, task: str, environment: str, split: str, secrets: dict[str, str] | None) -> None:
        server = self._client.environments.get(environment, variant=environment, base_url=self._url)
        tasks = {_task_id(entry): entry for entry in server.list_tasks(split)}
        if task not in tasks:
            raise WorkspaceError(f"{self._url} has no task {task!r}; it has: {', '.join(map(str, tasks))}")
        self._session = server.session(tasks[task], secrets=secrets)
        self.joined = self._join()
        if not self.joined:
            self._session = server.session(tasks[task], secrets=secrets)
            self._session.__enter__()
            self._record.begin(self.sid)
        self._session._run(_keep_alive(self._session._async))  # noqa: SLF001 - as in all of this module
        self.prompt = "\n".join(block.text for block in self._session.get_prompt() if block.type == "text")
        self.tools: dict[str, Mapping[str, Any]] = {
            tool.name: tool.input_schema or {} for tool in self._session.list_tools()
        }

    def _join(self) -> bool:
        """Continue the session of the record; tell whether the server still has it."""
        if self._record.sid is None:
            return False
        # The client has no way to join a session; these are the steps of its own start but for the creation.
        self._session._async.sid = self._record.sid  # noqa: SLF001
        try:
            self._session.get_prompt()
        except aiohttp.ClientResponseError as error:
            if error.status in _GONE:
                return False
            raise
        return True

    def call(self, tool: str, arguments: Mapping[str, Any], step: str | None = None) -> ToolResult:
        """Call a tool, and wait for a server that is away for a while.

        Args:
            tool: its name.
            arguments: of the call.
            step: of the run; given for a call that must not be made twice, which is recorded with its result.

        Raises:
            OutcomeUnknownError: if the connection broke so that nobody knows whether the call was carried out.
            WorkspaceError: if the server refuses the call.
            WorkspaceLostError: if there is no session any more, or the server stays away.
        """
        call = Call(tool, dict(arguments), step)
        if step is not None:
            self._record.keep(call)
        return self._settle(call)

    def take_up(self, call: Call) -> ToolResult:
        """Return the result of a recorded call, which the server may still be carrying out; errors as in :meth:`call`.

        Nothing is begun by this.
        """
        if call.result is None and call.task_id is None:
            raise OutcomeUnknownError("the agent was stopped before the server had confirmed the call")
        return call.result or self._settle(call)

    def close(self, *, left_open: bool = False) -> None:
        """End the session, unless it is left open or its server is away; the server removes its workspace."""
        if self._lost or left_open:
            self._session._async._ping_task.cancel()  # noqa: SLF001
        else:
            with contextlib.suppress(Exception):
                self._session.__exit__(None, None, None)
            self._record.remove()
        self._client.environments.close()

    def _settle(self, call: Call) -> ToolResult:
        away, began = False, time.monotonic()
        self._away_since = None

        def stays_away(state: tenacity.RetryCallState) -> bool:
            nonlocal away
            self._away_since = self._away_since or time.monotonic()  # the call itself may have taken hours
            self._waits.begin("ORS server: it does not answer")
            if time.monotonic() - self._away_since + state.upcoming_sleep >= self._wait_s:
                return True
            if not away:
                error = state.outcome and state.outcome.exception()
                self._report(f"{self._url} does not answer; waiting up to {self._wait_s:.0f} s ({error})")
            away = True
            return False

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_AwayError),
            wait=tenacity.wait_exponential(multiplier=0.25, max=_LONGEST_WAIT_S),
            stop=stays_away,
            reraise=True,
        )
        try:
            result: ToolResult = retrying(self._attempt, call)
        except _AwayError as error:
            self._lost = True
            raise WorkspaceLostError(f"{self._url} does not answer: {error}") from None
        finally:
            self._waits.end()
        waited_s = result.metadata.get("waited_s")  # for its turn at the server, which knows of it
        if isinstance(waited_s, int | float) and waited_s > 0:
            self._waits.leave_out(min(waited_s, time.monotonic() - began))
        if away:
            self._report(f"{self._url} answers again, in the same session")
        if call.step is not None:
            call.result = result
            self._record.keep(call)
        return result

    def _attempt(self, call: Call) -> ToolResult:
        try:
            output = self._run(self._post(call))
        except SessionTerminatedError as error:  # 410
            raise WorkspaceLostError(f"the session at {self._url} is lost: {self._one_line(error)}") from None
        except aiohttp.ClientResponseError as error:
            raise self._refusal(error, call) from None
        except AuthenticationError as error:
            self._lost = True
            raise WorkspaceLostError(f"{self._url} refuses the token: {self._one_line(error)}") from None
        except _RemoteSSEError as error:
            if call.task_id is not None and "unknown task_id" in str(error):
                raise OutcomeUnknownError("the server does not know any more what came of the call") from None
            raise WorkspaceError(f"{call.tool} failed on the server: {self._one_line(error)}") from None
        except (aiohttp.ClientError, MaxRetriesError, HeartbeatTimeoutError, OSError) as error:
            if call.task_id is None and not isinstance(error, aiohttp.ClientConnectorError):
                text = f"the connection to the server broke as {call.tool} was called: {self._one_line(error)}"
                raise OutcomeUnknownError(f"{text}; whether it was carried out is not known") from None
            raise _AwayError(self._one_line(error)) from None
        if not output["ok"] and output.get("reason") == "episode_finished":
            self.finished = True
            raise EpisodeFinishedError(self._one_line(output["error"]))
        if not output["ok"]:
            raise WorkspaceError(self._one_line(output["error"]))
        return ToolResult.of(output["output"])

    def _refusal(self, error: aiohttp.ClientResponseError, call: Call) -> Exception:
        text = self._one_line(error)
        if error.status in _GONE:
            return WorkspaceLostError(f"the session at {self._url} is lost: {text}")
        if error.status in _NOT_NOW or (error.status in _BROKEN_GATEWAYS and call.task_id is not None):
            return _AwayError(text)
        if error.status in _BROKEN_GATEWAYS:
            return OutcomeUnknownError(f"{call.tool}: {text}; whether it was carried out is not known")
        return WorkspaceError(f"the server refused {call.tool}: {text}")

    def _run(self, coroutine: Coroutine[None, None, Any]) -> Any:
        """Run a coroutine in the client's thread; when the wait for it is interrupted, it ends."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._session._loop)  # noqa: SLF001
        try:
            return future.result()
        finally:
            future.cancel()

    async def _post(self, call: Call) -> Any:
        """Send a call. The client's own ``call_tool`` would send one again whose outcome is not known."""

        def note(event: str, data: str) -> None:
            self._away_since = None
            self._waits.end()
            if event == "task_id":
                call.task_id = data.strip()
                if call is self._record.call:  # not one that was interrupted meanwhile
                    self._record.keep(call)

        session = self._session._async  # noqa: SLF001
        return await resumable_sse(
            session.client,
            session._env_path("/call"),  # noqa: SLF001
            sid=session.sid,
            token=session.api_key,
            deployment=session.deployment,
            json={"name": call.tool, "input": call.arguments},
            task_id=call.task_id,
            max_retries=2,
            on_event=note,
            resumable_only=True,
        )

    def _one_line(self, error: object) -> str:
        text = " ".join(str(error).split())[:500] or type(error).__name__
        return text.replace(sid, "[session]") if (sid := self._record.sid) else text


async def _keep_alive(session: Any) -> None:
    """Ping a session for as long as it is used: the client's own pings give it up, and end it, if some fail."""
    if session._ping_task is not None:  # noqa: SLF001
        session._ping_task.cancel()  # noqa: SLF001
    pings = session._run_ping(  # noqa: SLF001
        url=f"{session.base_url}/ping",
        sid=session.sid,
        api_key=session.api_key,
        sleep_time=_PING_S,
        deployment=session.deployment,
        max_consecutive_failures=1 << 62,
    )
    session._ping_task = asyncio.create_task(pings)  # noqa: SLF001


def _task_id(task: Any) -> Any:
    return task.task_spec.get("id", task.task_spec.get("name"))
