"""What one session may do through the proxy, what it has done, and its log."""

from __future__ import annotations

import asyncio
import datetime as dt
import errno
import json
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from re_bench_server.network.allow_list import AllowList

MAX_CONNECTIONS = 64
"""Connections of a session at a time."""
_LOOK_UPS = 8
_MAX_LOG = 16 << 20
_MAX_TEXT = 300
_MIB = 1 << 20


class RefusedError(Exception):
    """A request is not carried out."""

    def __init__(self, status: int, reason: str) -> None:
        """Name the HTTP status, and the reason, which the agent reads."""
        super().__init__(reason)
        self.status = status


class Traffic:
    """The traffic of one session."""

    def __init__(self, allow_list: AllowList, limit_mib: int, used_bytes: int, log: int) -> None:
        """Begin.

        Args:
            allow_list: the hosts that it may reach.
            limit_mib: MiB up and down together.
            used_bytes: what has been used of it before.
            log: a file descriptor to which lines are appended.
        """
        self.allow_list = allow_list
        self.used_bytes = used_bytes
        self.connections = 0
        self.open = 0  # connections, and those that have been served and not closed
        self.closed = False
        self.look_ups = asyncio.Semaphore(_LOOK_UPS)  # slow name servers must not keep other sessions waiting
        self._limit_mib, self._log, self._number = limit_mib, log, 0

    def begin(self, method: str, host: str, port: int, path: str | None = None) -> Exchange:
        """Begin a request or a tunnel."""
        self._number += 1
        return Exchange(self, self._number, method, host, port, path)

    def check_limits(self) -> None:
        """Do nothing if another request may be made.

        Raises:
            RefusedError: if a bound is reached.
        """
        if self.closed:
            raise RefusedError(403, "this session has ended")
        self.check_bytes()
        if self.connections > MAX_CONNECTIONS:
            raise RefusedError(429, f"this session has {MAX_CONNECTIONS} connections already; close some")
        if os.fstat(self._log).st_size >= _MAX_LOG:
            raise RefusedError(403, f"the log of this session's connections is full ({_MAX_LOG // _MIB} MiB)")

    def check_bytes(self) -> None:
        """Do nothing if the session may have more bytes.

        Raises:
            RefusedError: if not.
        """
        if self.used_bytes >= self._limit_mib * _MIB:
            raise RefusedError(
                403, f"this session has used up the {self._limit_mib} MiB of network traffic that the operator gives it"
            )

    def write(self, **fields: object) -> None:
        """Append a line to the log.

        Raises:
            OSError: if it cannot be written, is full or closed.
        """
        if self.closed:
            raise OSError(errno.EBADF, "it is closed")
        if os.fstat(self._log).st_size >= _MAX_LOG:
            raise OSError(errno.EFBIG, "it is full")
        record = {"time": dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds"), **fields}
        os.write(self._log, json.dumps(record).encode() + b"\n")

    def close(self) -> None:
        """Close the log; whoever has not ended is refused, since its descriptor may soon be another session's."""
        self.closed = True
        os.close(self._log)


@dataclass
class Exchange:
    """One request of a session, or one tunnel."""

    traffic: Traffic
    number: int
    method: str
    host: str
    port: int
    path: str | None
    """Without the query, which may hold secrets; None for a tunnel."""
    up: int = 0
    down: int = 0
    """Bytes to and from the host."""
    connected: bool = False

    def __post_init__(self) -> None:
        """Note the time."""
        self._started = time.monotonic()

    def count(self, *, up: int = 0, down: int = 0) -> None:
        """Count bytes.

        Raises:
            RefusedError: if the session may not have more.
        """
        self.up += up
        self.down += down
        self.traffic.used_bytes += up + down
        self.traffic.check_bytes()

    def log(self, event: str, **fields: object) -> None:
        """Append a line to the session's log: ``refused``, ``connected`` or ``ended``.

        Raises:
            RefusedError: if it cannot be written, since nothing happens without a record.
        """
        request = {"n": self.number, "event": event, "method": self.method[:_MAX_TEXT]}
        target: dict[str, object] = {"host": self.host[:_MAX_TEXT], "port": self.port}
        if self.path is not None:
            target["path"] = self.path[:_MAX_TEXT]
        try:
            self.traffic.write(**request, **target, **fields)
        except OSError as error:
            raise RefusedError(503, f"the log of this session's connections cannot be written ({error})") from None

    def end(self, outcome: str) -> None:
        """Log the end, with sizes and seconds, of what was connected; of what was not, that it was refused."""
        if not self.connected:
            self.log("refused", reason=outcome[:_MAX_TEXT])
            return
        seconds = round(time.monotonic() - self._started, 3)
        self.log("ended", up=self.up, down=self.down, seconds=seconds, outcome=outcome[:_MAX_TEXT])
