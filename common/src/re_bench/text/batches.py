"""Batches of tokens as numpy arrays: seeded random windows for training, consecutive ones for evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypedDict

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["RandomWindows", "State", "consecutive_windows"]


class State(TypedDict):
    """Where a :class:`RandomWindows` is; plain numbers, which JSON holds."""

    seed: int
    step: int


class RandomWindows:
    """Endless batches of windows at random offsets, int64 of shape [batch, length + 1].

    The inputs of a model are ``batch[:, :-1]`` and its targets ``batch[:, 1:]``. The offsets of a batch depend on seed
    and step only, through Philox's raw numbers, which numpy promises not to change. Taking them modulo the number of
    offsets favours some by less than one part in 10^9.
    """

    def __init__(self, tokens: NDArray[np.uint16], batch: int, length: int, seed: int = 0) -> None:
        """Draw from ``tokens``, which may be a memory map.

        Args:
            tokens: one dimension, at least length + 1 of them.
            batch: windows in a batch.
            length: predictions in a window.
            seed: from 0 to 2^64 - 1.

        Raises:
            ValueError: if a number is out of its range or the tokens are too few.
        """
        self._windows = _windows(tokens, batch, length)
        if not 0 <= seed < 1 << 64:
            raise ValueError(f"seed must be from 0 to 2^64 - 1, got {seed}")
        self._batch, self._seed, self._step = batch, seed, 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> NDArray[np.int64]:
        key, counter = np.zeros(2, np.uint64), np.zeros(4, np.uint64)
        key[0], counter[2] = self._seed, self._step
        offsets = np.random.Philox(key=key, counter=counter).random_raw(self._batch) % np.uint64(len(self._windows))
        self._step += 1
        windows: NDArray[np.int64] = self._windows[offsets].astype(np.int64)
        return windows

    def state(self) -> State:
        """Return what :meth:`restore` needs for the next batch to be the one that is next now."""
        return {"seed": self._seed, "step": self._step}

    def restore(self, state: State) -> None:
        """Go on where another one with the same tokens, batch and length was when it gave this state."""
        self._seed, self._step = state["seed"], state["step"]


def consecutive_windows(tokens: NDArray[np.uint16], batch: int, length: int) -> Iterator[NDArray[np.int64]]:
    """Yield all windows in order, int64 of shape [batch, length + 1], the last batch being what is left.

    Each window starts at the last token of the one before, so that every token but the first is predicted once.
    Fewer than ``length`` tokens at the very end are in no window.

    Raises:
        ValueError: if batch or length is not positive, or there are too few tokens for one window.
    """
    windows = _windows(tokens, batch, length)[::length]
    return (windows[start : start + batch].astype(np.int64) for start in range(0, len(windows), batch))


def _windows(tokens: NDArray[np.uint16], batch: int, length: int) -> NDArray[np.uint16]:
    """Return a view of every window of length + 1 tokens."""
    if batch < 1 or length < 1 or tokens.ndim != 1 or len(tokens) <= length:
        raise ValueError(f"no batches of {batch} windows of {length} + 1 tokens can be taken from shape {tokens.shape}")
    return sliding_window_view(np.asarray(tokens), length + 1)
