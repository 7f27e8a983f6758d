"""Connections of clients: bounded in number for each socket, and in the time that a client may take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 26\r\n\r\nToo many connections open."
)


class Connection(H11Protocol):
    """One connection. uvicorn itself waits without end for a head to arrive and for a response to be read."""

    def __init__(self, *arguments: Any, most: int, patience_s: float, **options: Any) -> None:
        """Prepare; uvicorn gives the other arguments.

        Args:
            arguments: uvicorn's.
            most: connections on one socket.
            patience_s: seconds for a request's head, and for a client that does not read what waits for it.
            options: uvicorn's.
        """
        super().__init__(*arguments, **options)
        self.listener: object = None
        """The address that the client has connected to."""
        self._most, self._patience_s = most, patience_s
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, unless the socket has as many as it may have."""
        super().connection_made(transport)
        self.listener = transport.get_extra_info("sockname")
        if sum(getattr(other, "listener", None) == self.listener for other in self.connections) > self._most:
            transport.write(_FULL)
            transport.close()
        else:
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

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        super().resume_writing()
        _cancel(self._write_timer)

    def on_response_complete(self) -> None:
        """Wait for the next request, while the client reads what is left of this response."""
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self._watch_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        _cancel(self._head_timer)
        _cancel(self._write_timer)
        super().connection_lost(exc)

    def _watch_writing(self) -> None:
        _cancel(self._write_timer)
        self._write_timer = self.loop.call_later(self._patience_s, self._abort_unread)

    def _abort_unread(self) -> None:
        if self.transport.get_write_buffer_size():  # closing would wait for the client without end
            self.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
