"""Server-sent events, as far as a stream of completions uses them."""

from __future__ import annotations

__all__ = ["DONE", "EventReader", "event"]

DONE = b"[DONE]"
_MAX_EVENT = 16 << 20


class EventReader:
    """The data of the events in a stream of bytes that arrives in pieces cut anywhere."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """Take in the next piece and return the data of all events that are whole now.

        Raises:
            ValueError: if an event is too long to be one.
        """
        text = self._rest + piece
        # A piece may end within \r\n: the \r waits for what follows.
        held = b"\r" if text.endswith(b"\r") else b""
        text = text.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text
        *events, rest = text.split(b"\n\n")
        self._rest = rest + held
        if len(self._rest) > _MAX_EVENT:
            raise ValueError("an event of the stream is too long")
        return [data for data in map(_data, events) if data]


def event(data: bytes) -> bytes:
    """Return an event with the data, which is one line."""
    return b"data: %b\n\n" % data


def _data(lines: bytes) -> bytes:
    found = [line[5:].removeprefix(b" ") for line in lines.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(found)
