"""Wait for the signal that a turn's results are ready: the runner's stream writes a word of GPU memory.

A stream of the scorer waits for the word and then probes the results. Host work at the end of a turn, such as the
runner's reply and kernel launches, therefore overlaps with GPU work in every turn, and replying early gains nothing.
The word does not need to be trusted, because the probe detects missing results.
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
"""Size of a signal's memory in bytes."""


class Signal:
    """A word of GPU memory shared with a runner, and the value that signals that results are ready.

    Args:
        memory: :data:`WORD` bytes that the runner may write.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self.memory = memory
        self._address: int = memory.__cuda_array_interface__["data"][0]
        self.value = 0

    def renew(self) -> int:
        """Set and return a new secret value, which the runner cannot have written before."""
        self.value = secrets.randbits(31)
        return self.value

    @contextmanager
    def awaited(self, stream: int) -> Iterator[None]:
        """Make work queued on ``stream`` in the ``with`` block wait on the GPU until the word has the value.

        Leaving the block ends the wait in any case.
        """
        wait_for_value(stream, self._address, self.value)
        try:
            yield
        finally:
            write_value(0, self._address, self.value)  # on the default stream, because ``stream`` waits


def done_within(event: Any, seconds: float) -> bool:
    """Return whether a CUDA event happens within ``seconds``, by polling."""
    latest = time.monotonic() + seconds
    while not event.query():
        if time.monotonic() > latest:
            return False
    return True
