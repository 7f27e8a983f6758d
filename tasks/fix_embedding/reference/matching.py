# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Match tokens and rows with tables too large for memory: products of two thin matrices, computed in blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK = 1 << 26
"""Entries of a table in memory at a time: 256 MiB, for each intermediate result."""
SINKHORN = 6
"""Iterations of normalising a table over rows and over tokens."""
CANDIDATES = 128
"""Candidate rows for each token in an assignment."""
INCREMENT = 0.02
"""Increment of bids, in nats; the assignment is optimal to within this much per token."""
GIVE_UP_MARGIN = 1.0
"""Nats below its last candidate at which a token gives up."""
ROUNDS = 5_000
"""Rounds of bids; tokens that still compete after them get none of these rows."""


class Table(NamedTuple):
    """How well each row suits each token, [tokens, rows], in nats: ``left @ right.T``."""

    left: Tensor
    """[tokens, rank]"""
    right: Tensor
    """[rows, rank]"""

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield blocks of tokens with their part of the table, which may be overwritten."""
        step = max(1, BLOCK // len(self.right))
        for start in range(0, len(self.left), step):
            part = slice(start, start + step)
            yield part, self.left[part] @ self.right.T

    def normalisers(self) -> tuple[Tensor, Tensor]:
        """Return the offsets of tokens and rows, in nats, that make shares add up to about one both ways.

        This is Sinkhorn's algorithm, ending with the rows.
        """
        of_tokens, of_rows = torch.zeros_like(self.left[:, 0]), torch.zeros_like(self.right[:, 0])
        for _ in range(SINKHORN):
            excess = torch.full_like(of_rows, -torch.inf)
            for part, block in self.blocks():
                of_tokens[part] = block.sub_(of_rows).logsumexp(1)
                excess = torch.logaddexp(excess, block.sub_(of_tokens[part, None]).logsumexp(0))
            of_rows += excess
        return of_tokens, of_rows

    def spread(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return for each token the mean of ``values`` [rows, any] over its shares of rows, and its largest share."""
        of_tokens, of_rows = self.normalisers()
        means, largest = values.new_empty(len(self.left), values.shape[1]), torch.empty_like(of_tokens)
        for part, block in self.blocks():
            shares = block.sub_(of_rows).sub_(of_tokens[part, None]).exp_()
            means[part], largest[part] = shares @ values, shares.amax(1)
        return means, largest

    def assign(self) -> Tensor:
        """Return a row for each token, without duplicates, with about the largest sum of entries.

        A token gets one of its CANDIDATES best rows. Tokens that are outbid everywhere get the
        remaining rows.
        """
        of_tokens, of_rows = self.normalisers()
        parts = [block.sub_(of_rows).topk(min(CANDIDATES, len(of_rows))) for _, block in self.blocks()]
        values = torch.cat([part.values for part in parts]) - of_tokens[:, None]
        # On the CPU: thousands of small steps, which take minutes on a shared GPU.
        order = auction(values.cpu(), torch.cat([part.indices for part in parts]).cpu(), len(of_rows))
        left = torch.ones(len(of_rows), dtype=torch.bool)
        left[order[order >= 0]] = False
        order[order < 0] = left.nonzero()[:, 0]
        return order.to(of_rows.device)


def auction(values: Tensor, rows: Tensor, size: int) -> Tensor:
    """Return for each token the row that it wins, or -1 (Bertsekas 1988, all tokens at once).

    A token without a row bids for the best one at the current prices and outbids its owner. It gives up when the
    prices leave it with less than GIVE_UP_MARGIN under its last candidate.

    Args:
        values: each token's values of its candidates, in falling order, in nats, [tokens, candidates].
        rows: these candidates, from 0 to ``size`` - 1.
        size: the number of rows.
    """
    prices, owners = values.new_zeros(size), rows.new_full((size,), -1)
    order, waiting = rows.new_full((len(rows),), -1), torch.arange(len(rows), device=rows.device)
    least = values[:, -1] - GIVE_UP_MARGIN
    for _ in range(ROUNDS):
        best = (values[waiting] - prices[rows[waiting]]).topk(2)
        bidding = best.values[:, 0] > least[waiting]
        waiting, gains = waiting[bidding], best.values[bidding]
        if not len(waiting):
            break
        wanted = rows[waiting, best.indices[bidding, 0]]
        bids = prices[wanted] + gains[:, 0] - torch.maximum(gains[:, 1], least[waiting]) + INCREMENT
        highest = torch.full_like(prices, -torch.inf).scatter_reduce(0, wanted, bids, "amax")
        winning = bids == highest[wanted]
        winners = torch.full_like(owners, -1)
        winners[wanted[winning]] = waiting[winning]  # one of those with the same bid
        sold = (winners >= 0).nonzero()[:, 0]
        losers = owners[sold]
        losers = losers[losers >= 0]
        order[losers] = -1
        order[winners[sold]] = sold
        owners[sold], prices[sold] = winners[sold], highest[sold]
        waiting = torch.cat([waiting[order[waiting] < 0], losers])
    return order
