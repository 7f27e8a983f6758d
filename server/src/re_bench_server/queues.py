"""Queues: scorings wait for a free slot, and on a GPU nothing else runs while a submission is timed."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Queue:
    """A number of slots; who finds none free waits in order."""

    def __init__(self, slots: int) -> None:
        self._free = asyncio.Semaphore(slots)
        self.waiting = 0
        self.running = 0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Hold a slot for as long as the block runs; gives the seconds waited for it."""
        began = time.monotonic()
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            yield time.monotonic() - began
        finally:
            self.running -= 1
            self._free.release()


class GpuGate:
    """Keeps a timed scoring alone on its GPU, as far as this server's sessions go.

    Scorings run one at a time. Where sessions have the same GPU, no command starts while one runs; a command that has
    started goes on.
    """

    def __init__(self, *, separate: bool = False) -> None:
        """Begin idle; ``separate`` says that no session has the GPU of scorings."""
        self.scorings = Queue(1)
        self._separate = separate
        self._idle = asyncio.Event()
        self._idle.set()

    @asynccontextmanager
    async def scoring(self) -> AsyncIterator[float]:
        """Hold the GPU; gives the seconds waited for it."""
        async with self.scorings.slot() as waited_s:
            if not self._separate:
                self._idle.clear()
            try:
                yield waited_s
            finally:
                self._idle.set()

    async def wait_until_idle(self) -> float:
        """Wait until no scoring runs, and return the seconds that this took."""
        began = time.monotonic()
        await self._idle.wait()
        return time.monotonic() - began
