"""A session of an ORS server, through the official client; the session of a killed process is joined again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlab_agent.workspaces.files import WorkspaceError, WorkspaceLostError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PING_S = 10
_NO_KEY = "none"


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool call."""

    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    reward: float | None = None
    finished: bool = False


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
        record: Path | None,
    ) -> None:
        """Open a session, or join the one of the file ``record``, if the server still has it.

        Raises:
            WorkspaceError: if the client is not installed, there is no such server or task, or the server refuses.
        """
        self._client = _client(token)
        self._record = record
        self._origin = {"url": url, "task": task, "environment": environment}
        try:
            self._open(split, dict(secrets) or None)
        except BaseException as error:
            self._client.environments.close()
            if isinstance(error, WorkspaceError) or not isinstance(error, Exception):
                raise
            raise WorkspaceError(f"there is no session at {url}: {_one_line(error)}") from None

    def _open(self, split: str, secrets: dict[str, str] | None) -> None:
        url, task, environment = self._origin["url"], self._origin["task"], self._origin["environment"]
        server = self._client.environments.get(environment, variant=environment, base_url=url)
        tasks = {_task_id(entry): entry for entry in server.list_tasks(split)}
        if task not in tasks:
            raise WorkspaceError(f"{url} has no task {task!r}; it has: {', '.join(map(str, tasks))}")
        self._session = server.session(tasks[task], secrets=secrets)
        self.joined = self._join()
        if not self.joined:
            self._session = server.session(tasks[task], secrets=secrets)
            self._session.__enter__()
            self._save()
        self.prompt = "\n".join(block.text for block in self._session.get_prompt() if block.type == "text")
        self.tools: dict[str, Mapping[str, Any]] = {
            tool.name: tool.input_schema or {} for tool in self._session.list_tools()
        }

    def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool.

        Raises:
            WorkspaceError: if the server refuses the call.
            WorkspaceLostError: if there is no session any more.
        """
        from openreward.api.errors import ToolCallError  # noqa: PLC0415 - seconds, and an extra

        try:
            output = self._session.call_tool(tool, dict(arguments))
        except ToolCallError as error:
            raise WorkspaceError(_one_line(error)) from None
        except Exception as error:  # noqa: BLE001 - whatever the client raises, its session is of no use any more
            raise WorkspaceLostError(f"the session at {self._origin['url']} is lost: {_one_line(error)}") from None
        text = "".join(block.text for block in output.blocks if block.type == "text")
        return ToolResult(text, output.metadata or {}, output.reward, bool(output.finished))

    def close(self) -> None:
        """End the session; the server removes its workspace."""
        with contextlib.suppress(Exception):
            self._session.__exit__(None, None, None)
        self._client.environments.close()
        if self._record is not None:
            self._record.unlink(missing_ok=True)

    def _save(self) -> None:
        """Save the session's id, readable for this user alone: with it anybody could use the session."""
        if self._record is not None:
            self._record.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                self._record.unlink()
            file = os.open(self._record, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(file, "w", encoding="utf-8") as record:  # noqa: PTH123 - a descriptor
                json.dump({**self._origin, "sid": self._session.sid}, record)

    def _join(self) -> bool:
        """Continue the session of the record; tell whether the server still has it."""
        try:
            record = json.loads(self._record.read_text(encoding="utf-8")) if self._record is not None else {}
        except (OSError, ValueError):
            return False
        sid = record.pop("sid", None)
        if not sid or record != self._origin:
            return False
        # The client has no way to join a session; these are the steps of its own start but for the creation.
        session = self._session._async  # noqa: SLF001
        session.sid = sid
        self._session._run(_start_pings(session))  # noqa: SLF001
        try:
            self._session.get_prompt()
        except Exception:  # noqa: BLE001 - it is gone, and a new one is made
            session._ping_task.cancel()  # noqa: SLF001
            return False
        return True


async def _start_pings(session: Any) -> None:
    pings = session._run_ping(  # noqa: SLF001
        url=f"{session.base_url}/ping",
        sid=session.sid,
        api_key=session.api_key,
        sleep_time=_PING_S,
        deployment=session.deployment,
    )
    session._ping_task = asyncio.create_task(pings)  # noqa: SLF001


def _client(token: str | None) -> Any:
    os.environ.setdefault("OPENREWARD_DISABLE_UPDATE_CHECK", "1")
    try:
        from openreward import OpenReward  # noqa: PLC0415 - seconds, and an extra
    except ImportError:
        raise WorkspaceError("an ORS server needs the client openreward: pip install 'mlab-agent[ors]'") from None
    return OpenReward(api_key=token or _NO_KEY)  # without one it would send $OPENREWARD_API_KEY to any server


def _task_id(task: Any) -> Any:
    return task.task_spec.get("id", task.task_spec.get("name"))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:500] or type(error).__name__
