"""The first and the last part of an output that may be too long to keep. Standard library only: sandboxes show it."""

from __future__ import annotations


class HeadTail:
    """The first and the last half of a byte stream that may be too long to keep; the middle is counted."""

    def __init__(self, keep: int) -> None:
        self._half = max(keep // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0
        """Bytes seen so far."""

    def add(self, data: bytes) -> None:
        """Take in the next piece of the stream."""
        self.total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def begin(self) -> bytes:
        """Return all there was, as long as :attr:`total` is no more than what is kept."""
        return bytes(self._head + self._tail)

    def data(self, more: str = "") -> bytes:
        """Return what was kept, with a line in the middle that says how much was left out, and ``more`` about it."""
        tail = self._tail[-self._half :]
        dropped = self.total - len(self._head) - len(tail)
        gap = f"\n[... {dropped} bytes left out{more} ...]\n".encode() if dropped else b""
        return bytes(self._head + gap + tail)

    def text(self, more: str = "") -> str:
        """Return :meth:`data` as text."""
        return self.data(more).decode(errors="replace")
