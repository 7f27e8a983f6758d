"""The truth: held-out tokens masked by a fixed draw, and the loss of a model's logits at the masked positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from re_bench.text import RandomWindows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

SEED = 20_241_122
"""Of order and masks. It is no secret: who knows it without the text knows nothing."""
_BITS = 64


@dataclass(frozen=True)
class Batch:
    """One batch."""

    tokens: NDArray[np.int64]
    """What the model gets, [batch, length]: the mask's id at every masked position."""
    positions: NDArray[np.int64]
    """The masked positions, counted through the flattened batch."""
    labels: NDArray[np.int64]
    """The tokens that were there."""


def count(tokens: NDArray[np.uint16], batch: int, length: int, random: int | None) -> int:
    """Return how many batches there are; see :func:`batches`."""
    return len(tokens) // length // batch if random is None else random


def batches(
    tokens: NDArray[np.uint16], batch: int, length: int, *, random: int | None, mask_id: int, share: float
) -> Iterator[Batch]:
    """Yield the masked batches, the same in every run.

    Args:
        tokens: the held-out text.
        batch: windows in a batch.
        length: tokens in a window.
        random: how many batches of random windows; None for all non-overlapping windows once, but for those that do
            not fill a batch at the end. Their order is drawn, so that windows of a batch are not neighbours.
        mask_id: stands at every masked position.
        share: the probability of a position to be masked.
    """
    # Raw numbers of Philox, because numpy promises that these never change.
    order, masks = (np.random.Philox(key=np.array([SEED, stream], np.uint64)) for stream in range(2))
    windows = _random(tokens, batch, length, random) if random is not None else _all(tokens, batch, length, order)
    threshold = np.uint64(int(share * (1 << _BITS)))
    for window in windows:
        masked = masks.random_raw(window.size).reshape(window.shape) < threshold
        positions = np.flatnonzero(masked)
        if positions.size:
            yield Batch(np.where(masked, mask_id, window), positions, window.reshape(-1)[positions])


def _all(tokens: NDArray[np.uint16], batch: int, length: int, order: np.random.Philox) -> Iterator[NDArray[np.int64]]:
    number = len(tokens) // length
    windows = tokens[: number * length].reshape(number, length)
    drawn = np.argsort(order.random_raw(number), kind="stable")
    for start in range(0, number - batch + 1, batch):
        yield windows[drawn[start : start + batch]].astype(np.int64)


def _random(tokens: NDArray[np.uint16], batch: int, length: int, number: int) -> Iterator[NDArray[np.int64]]:
    draw = RandomWindows(tokens, batch, length - 1, SEED)
    for _ in range(number):
        yield next(draw)


def cross_entropy(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return -ln softmax(logits)[label] for each row, computed in float64.

    Args:
        logits: [positions, vocabulary].
        labels: [positions].
    """
    import torch  # noqa: PLC0415 - late, so that the sandboxes start meanwhile

    wide = torch.from_numpy(logits.astype(np.float64))
    chosen = wide.gather(1, torch.from_numpy(labels)[:, None])[:, 0]
    loss: NDArray[np.float64] = (torch.logsumexp(wide, 1) - chosen).numpy()
    return loss
