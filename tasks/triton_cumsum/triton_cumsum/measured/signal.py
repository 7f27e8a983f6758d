"""Signal that the results of a turn are ready: the runner's stream writes a word of GPU memory.

A stream of the scorer waits for the word and then probes the results. The host's work at the end of a turn, such as the
runner's reply and kernel launches, therefore overlaps with the GPU's in every turn, and replying early gains nothing.
The word is untrusted: missing results are detected.
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
    """A word of GPU memory shared with a runner, and its value when results are ready.

    Args:
        memory: :data:`WORD` bytes that the runner may write.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self.memory = memory
        self._address: int = memory.__cuda_array_interface__["data"][0]
        self.value = 0

    def renew(self) -> int:
        """Return a new secret value, which cannot have been written before."""
        self.value = secrets.randbits(31)
        return self.value

    @contextmanager
    def awaited(self, stream: int) -> Iterator[None]:
        """Make work that is queued in the ``with`` block wait on the GPU until the word has the value.

        The end of the block releases the wait in any case.
        """
        wait_for_value(stream, self._address, self.value)
        try:
            yield
        finally:
            write_value(0, self._address, self.value)  # from another stream, because that one waits


def done_within(event: Any, seconds: float) -> bool:
    """Poll an event for some seconds, and tell whether it has happened."""
    latest = time.monotonic() + seconds
    while not event.query():
        if time.monotonic() > latest:
            return False
    return True
