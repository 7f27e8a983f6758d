"""What is kept of a session of an ORS server, so that a resumed run continues it: its id and the last answer."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


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

    def __init__(self, path: Path | None, origin: Mapping[str, str]) -> None:
        """Read the record if there is one of the same origin.

        Args:
            path: the file; None to keep nothing.
            origin: the task and the environment; the server may be at another address by now.
        """
        self._path = path
        self._origin = dict(origin)
        self._lock = threading.Lock()  # the client's thread writes, too
        self.sid: str | None = None
        self.call: Call | None = None
        try:
            record = json.loads(path.read_text(encoding="utf-8")) if path is not None else {}
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
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        if self._path is None:
            return
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
