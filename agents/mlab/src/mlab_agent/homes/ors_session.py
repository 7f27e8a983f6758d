"""A session of an ORS server, through the official client; one that a killed process has left is joined again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlab_agent.homes import HomeError, HomeLostError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["OrsSession", "Said"]

_PING_S = 10
_NOBODY = "none"


@dataclass(frozen=True)
class Said:
    """What a tool has said."""

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
        kept: Path | None,
    ) -> None:
        """Open a session, or join the one that the file ``kept`` tells of, if the server still has it.

        Raises:
            HomeError: if the client is not installed, there is no such server or task, or the server refuses.
        """
        self._client = _client(token)
        self._kept = kept
        self._about = {"url": url, "task": task, "environment": environment}
        try:
            self._open(split, dict(secrets) or None)
        except BaseException as error:
            self._client.environments.close()
            if isinstance(error, HomeError) or not isinstance(error, Exception):
                raise
            raise HomeError(f"there is no session at {url}: {_words(error)}") from None

    def _open(self, split: str, secrets: dict[str, str] | None) -> None:
        url, task, environment = self._about["url"], self._about["task"], self._about["environment"]
        found = self._client.environments.get(environment, variant=environment, base_url=url)
        tasks = {_id(each): each for each in found.list_tasks(split)}
        if task not in tasks:
            raise HomeError(f"{url} has no task {task!r}; it has: {', '.join(map(str, tasks))}")
        self._session = found.session(tasks[task], secrets=secrets)
        self.joined = self._join()
        if not self.joined:
            self._session = found.session(tasks[task], secrets=secrets)
            self._session.__enter__()
            self._keep()
        self.prompt = "\n".join(block.text for block in self._session.get_prompt() if block.type == "text")
        self.tools: dict[str, Mapping[str, Any]] = {
            each.name: each.input_schema or {} for each in self._session.list_tools()
        }

    def call(self, tool: str, given: Mapping[str, Any]) -> Said:
        """Call a tool.

        Raises:
            HomeError: if the server refuses the call.
            HomeLostError: if there is no session any more.
        """
        from openreward.api.errors import ToolCallError  # noqa: PLC0415 - seconds, and an extra

        try:
            output = self._session.call_tool(tool, dict(given))
        except ToolCallError as error:
            raise HomeError(_words(error)) from None
        except Exception as error:  # noqa: BLE001 - whatever the client raises, its session is of no use any more
            raise HomeLostError(f"the session at {self._about['url']} is lost: {_words(error)}") from None
        text = "".join(block.text for block in output.blocks if block.type == "text")
        return Said(text, output.metadata or {}, output.reward, bool(output.finished))

    def close(self) -> None:
        """End the session; the server removes its workspace."""
        with contextlib.suppress(Exception):
            self._session.__exit__(None, None, None)
        self._client.environments.close()
        if self._kept is not None:
            self._kept.unlink(missing_ok=True)

    def _keep(self) -> None:
        """Write down the session's id, with which anybody could use it, for us alone."""
        if self._kept is not None:
            self._kept.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                self._kept.unlink()
            file = os.open(self._kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(file, "w", encoding="utf-8") as kept:  # noqa: PTH123 - a descriptor
                json.dump({**self._about, "sid": self._session.sid}, kept)

    def _join(self) -> bool:
        """Take up the session that was kept; tell whether the server still has it."""
        try:
            kept = json.loads(self._kept.read_text(encoding="utf-8")) if self._kept is not None else {}
        except (OSError, ValueError):
            return False
        sid = kept.pop("sid", None)
        if not sid or kept != self._about:
            return False
        # The client has no way to join a session; these are the steps of its own start but for the creation.
        session = self._session._async  # noqa: SLF001
        session.sid = sid
        self._session._run(_ping(session))  # noqa: SLF001
        try:
            self._session.get_prompt()
        except Exception:  # noqa: BLE001 - it is gone, and a new one is made
            session._ping_task.cancel()  # noqa: SLF001
            return False
        return True


async def _ping(session: Any) -> None:
    pinging = session._run_ping(  # noqa: SLF001
        url=f"{session.base_url}/ping",
        sid=session.sid,
        api_key=session.api_key,
        sleep_time=_PING_S,
        deployment=session.deployment,
    )
    session._ping_task = asyncio.create_task(pinging)  # noqa: SLF001


def _client(token: str | None) -> Any:
    os.environ.setdefault("OPENREWARD_DISABLE_UPDATE_CHECK", "1")
    try:
        from openreward import OpenReward  # noqa: PLC0415 - seconds, and an extra
    except ImportError:
        raise HomeError("an ORS server needs the client openreward: pip install 'mlab-agent[ors]'") from None
    return OpenReward(api_key=token or _NOBODY)  # without one it would send $OPENREWARD_API_KEY to any server


def _id(task: Any) -> Any:
    return task.task_spec.get("id", task.task_spec.get("name"))


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:500] or type(error).__name__
