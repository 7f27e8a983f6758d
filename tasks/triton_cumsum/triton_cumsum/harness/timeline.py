"""When programs of a launch wait for each other: each has a clock, and sees of the others what was there by then.

The interpreter runs one program after the other, so none ever has to wait. Here a program begins when the device has
worked off those before it, and its clock goes on by what it does. A word that another program has stored can be seen
``hop_s`` later; until then a load gives what stood there before. So a program that looks back at its neighbours finds
what it would find on a GPU, and one that waits for a word asks again, until its clock has come to that word's time.
"""

from __future__ import annotations

import bisect
import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from triton_cumsum.harness.device import program_seconds, work_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from triton_cumsum.harness.device import Device

WORDS = 64
"""Stores of more elements are not remembered word by word: who reads what they wrote waits for all of it."""
ASKED = 4096
"""Loads of more elements do not ask word by word: they wait for the last of all words among which theirs lie."""
CELL = 8


class Word:
    """The history of one word: at each time, the program that stored to it then and the value until then."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.programs: list[int] = []
        self.before: list[bytes] = []


class _Range:
    """The range of all addresses of some stores, and the time of the last of these."""

    def __init__(self) -> None:
        self.low, self.high, self.time = 2**64, 0, 0.0

    def add(self, low: int, high: int, time: float) -> None:
        self.low, self.high, self.time = min(self.low, low), max(self.high, high), max(self.time, time)

    def meets(self, low: int, high: int) -> bool:
        return self.low < high and low < self.high


class Timeline:
    """The clocks of the programs of one launch, and the words by which they know of each other."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._cells: dict[int, dict[tuple[int, int], Word]] = {}
        self._words = _Range()
        self._blocks: list[tuple[int, int, float, int]] = []
        self._written = _Range()
        self._begin = 0.0
        self._waited = 0.0
        self._program = -1
        self._ends: list[float] = []
        self._asked: tuple[Any, ...] = ()

    def start(self) -> None:
        """Note that the next program begins."""
        self._program += 1

    def stop(self, own: Mapping[str, float]) -> None:
        """Note that the program has ended, which counted ``own``; a second time is in vain."""
        if len(self._ends) == self._program:
            self._ends.append(self.now(own))
            self._begin += work_seconds(own, self._device.rates)
        self._waited, self._asked = 0.0, ()

    def now(self, own: Mapping[str, float]) -> float:
        """Return the time by the clock of the program that runs."""
        return self._begin + self._waited + program_seconds(own, self._device.program)

    def spans(self) -> tuple[float, float]:
        """Return the time at which the last program ends, and by how much each program of the second half moves it."""
        half = len(self._ends) // 2
        if not half:
            return max(self._ends, default=0.0), 0.0
        early, late = max(self._ends[:half]), max(self._ends)
        return late, max(0.0, late - early) / (len(self._ends) - half)

    def store(self, addresses: Any, size: int, own: Mapping[str, float], *, atomic: bool = False) -> None:
        """Note a store; an atomic access first waits for those before it to the same words."""
        if not addresses.size:
            return
        low, high = int(addresses.min()), int(addresses.max()) + size
        if addresses.size > WORDS:
            self._written.add(low, high, self.now(own))
            self._blocks.append((low, high, self.now(own), self._program))
            return
        self._words.add(low, high, self.now(own))
        asked = False
        for address in addresses.tolist():
            word = self._cells.setdefault(address // CELL, {}).setdefault((address, size), Word())
            asked |= atomic and bool(word.times) and word.programs[-1] != self._program
            if atomic and word.times:
                self._wait_until(word.times[-1], own)
            word.times.append(max([self.now(own), *word.times[-1:]]))
            word.programs.append(self._program)
            word.before.append(ctypes.string_at(address, size))
        # It takes effect in the order of the accesses, but the program has what stood there only later.
        self._waited += self._device.hop_s if asked else 0.0

    def load(self, addresses: Any, active: Any, size: int, values: Any, own: Mapping[str, float]) -> tuple[Any, bool]:
        """Return ``values`` as the program sees them now, at those of ``addresses`` that are ``active``.

        Also return whether this launch has stored some of them.
        """
        places = np.flatnonzero(active)
        if not places.size or not (self._cells or self._blocks):
            return values, False
        flat = addresses.reshape(-1)[places]
        low, high = int(flat.min()), int(flat.max()) + size
        times = []
        if self._written.meets(low, high):
            times = [
                time
                for start, stop, time, program in self._blocks
                if start < high and low < stop and program != self._program
            ]
            if times:
                self._wait_until(max(times) + self._device.hop_s, own)
        if not self._words.meets(low, high):
            return values, bool(times)
        if flat.size > ASKED:
            self._wait_until(self._words.time + self._device.hop_s, own)
            return values, True
        words = [(place, self._word(address, size, own)) for place, address in zip(places, flat.tolist(), strict=True)]
        known = [(place, word) for place, word in words if word is not None]
        if not known:
            return values, bool(times)
        self._ask(known, (low, high, flat.size), own)
        return self._seen(known, values, own), True

    def _word(self, address: int, size: int, own: Mapping[str, float]) -> Word | None:
        cell = self._cells.get(address // CELL)
        if cell is None:
            return None
        for (start, length), word in cell.items():
            if (start, length) == (address, size):
                return word
            if start < address + size and address < start + length:
                # Part of a word, or words together: their last values, once they are there.
                self._wait_until(word.times[-1] + self._device.hop_s, own)
        return None

    def _ask(self, known: list[tuple[Any, Word]], question: tuple[Any, ...], own: Mapping[str, float]) -> None:
        """If the program has asked the same before, and nothing has come since, go on to when something does."""
        now, hop = self.now(own), self._device.hop_s
        if self._asked[1:] == question:
            coming = [t + hop for _, word in known for t in word.times if t + hop > self._asked[0]]
            if coming and min(coming) > now:
                self._wait_until(min(coming), own)
        self._asked = (self.now(own), *question)

    def _seen(self, known: list[tuple[Any, Word]], values: Any, own: Mapping[str, float]) -> Any:
        by = self.now(own) - self._device.hop_s
        values = np.array(values)
        flat = values.reshape(-1)
        for place, word in known:
            first = bisect.bisect_right(word.times, by)
            while first < len(word.times) and word.programs[first] == self._program:
                first += 1
            if first < len(word.times):
                flat[place] = np.frombuffer(word.before[first], flat.dtype)[0]
        return values

    def _wait_until(self, time: float, own: Mapping[str, float]) -> None:
        self._waited += max(0.0, time - self.now(own))
