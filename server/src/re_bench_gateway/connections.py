"""Connections of clients, bounded in the time that a client may take; :mod:`listeners` bounds their number."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    import uvicorn


class Connection(H11Protocol):
    """One connection. uvicorn itself waits without end for a head to arrive and for a response to be read."""

    def __init__(self, server: uvicorn.Server, *, patience_s: float, lost: Callable[[], None]) -> None:
        """Prepare.

        Args:
            server: what answers.
            patience_s: seconds for a request's head, and for a client that reads nothing of what waits for it.
            lost: called once, at the end of the connection.
        """
        super().__init__(server.config, server.server_state, {}, asyncio.get_running_loop())
        self._patience_s, self._lost = patience_s, lost
        self._unread = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self._patience_s, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Take in data; the timer of a head runs for as long as there is no request."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            _cancel(self._head_timer)
            self._head_timer = None
        elif self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self._patience_s, self.transport.abort)

    def pause_writing(self) -> None:
        """Wait for the client to read, not without end."""
        super().pause_writing()
        self._watch_writing()

    def on_response_complete(self) -> None:
        """Wait for the next request, while the client reads what is left of this response."""
        super().on_response_complete()
        self._watch_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        _cancel(self._head_timer)
        _cancel(self._write_timer)
        super().connection_lost(exc)
        self._lost()

    def _watch_writing(self) -> None:
        _cancel(self._write_timer)
        self._unread = self.transport.get_write_buffer_size()
        if self._unread:
            self._write_timer = self.loop.call_later(self._patience_s, self._look_at_writing)

    def _look_at_writing(self) -> None:
        """Abort if the client has read nothing, as closing would wait for it without end."""
        waits = self.flow.write_paused or self.cycle is None or self.cycle.response_complete
        if waits and self.transport.get_write_buffer_size() >= self._unread:
            self.transport.abort()
        elif waits:
            self._watch_writing()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
