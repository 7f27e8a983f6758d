"""Queues: scorings take turns, and on a GPU nothing else runs while one is timed."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["GpuGate", "Turns"]


class Turns:
    """At most ``number`` holders at a time; others wait in order."""

    def __init__(self, number: int) -> None:
        self._free = asyncio.Semaphore(number)
        self.waiting = 0
        self.running = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[float]:
        """Hold a turn for as long as the block runs; gives the seconds that were waited."""
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
    """What keeps a timed scoring alone on the GPU, as far as this server's sessions go.

    Scorings take turns. A command does not begin while one runs; one that has begun goes on.
    """

    def __init__(self) -> None:
        self.scorings = Turns(1)
        self._quiet = asyncio.Event()
        self._quiet.set()

    @asynccontextmanager
    async def scoring(self) -> AsyncIterator[float]:
        """Hold the GPU; gives the seconds that were waited."""
        async with self.scorings.turn() as waited:
            self._quiet.clear()
            try:
                yield waited
            finally:
                self._quiet.set()

    async def command(self) -> float:
        """Wait until no scoring runs, and return the seconds that this took."""
        began = time.monotonic()
        await self._quiet.wait()
        return time.monotonic() - began
