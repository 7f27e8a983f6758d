"""How a runner says that the results of a turn are there, without a message: its stream writes a word of GPU memory.

A stream of ours waits for the word, and then looks at the results. So what the host does at the end of a turn, the
runner's answer and the launch of our kernels, goes by while the GPU works, in every turn alike, and answering early
hides nothing more. The word is not believed: a result that is missing then is found missing.
"""

from __future__ import annotations

import secrets
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from re_bench.guest.device_memory import wait_for_value, write_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from re_bench.guest.device_memory import DeviceMemory

WORD = 4
"""Bytes of the memory that a signal needs."""


class Signal:
    """A word of GPU memory shared with a runner, and the value that it is to have when results are there.

    Args:
        memory: :data:`WORD` bytes that the runner may write.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self.memory = memory
        self._address: int = memory.__cuda_array_interface__["data"][0]
        self.value = 0

    def renew(self) -> int:
        """Return a new secret value, which nobody can have written before."""
        self.value = secrets.randbits(31)
        return self.value

    @contextmanager
    def awaited(self, stream: int) -> Iterator[None]:
        """Have the work that a stream is given within a ``with`` block wait on the GPU until the value is there.

        At the end of the block nothing waits any longer, whether it was or not.
        """
        wait_for_value(stream, self._address, self.value)
        try:
            yield
        finally:
            write_value(0, self._address, self.value)  # by another stream: that one waits


def done_within(event: Any, seconds: float) -> bool:
    """Look whether an event has happened, again and again for some seconds, and tell whether it has."""
    latest = time.monotonic() + seconds
    while not event.query():
        if time.monotonic() > latest:
            return False
    return True
