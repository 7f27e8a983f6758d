# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""The reference: the rows of the embedding are all there, in the wrong places; find the place of each.

1. The rest of the model still knows which row follows which: one-token contexts give the probability of every row
   after every other. The training text tells how often each token follows each other. Two tables of the same thing,
   but for the unknown order: a graph matching problem.
2. It is solved by soft assignment (Gold and Rangarajan 1996): every token is spread over rows; how well a token and
   a row agree follows from where their neighbours are; and the spread is sharpened step by step. The first guess
   comes from how often tokens and rows occur at all.
3. Whole contexts settle the rest. Given the hidden states of a text, its likelihood is linear in which row belongs
   to which token: a token gains with a row what the sum of the hidden states before the token gives with that row. So
   the best order is a linear assignment.

The logarithm of a model's table is a product of hidden states and embedding, and what agrees with it is one of means of
these; ``matching.py`` takes such products block by block, so that no table of all pairs is ever in memory.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from batches import RandomWindows
from gpt import GPT, GPTConfig
from matching import Table
from safetensors.torch import save_file
from torch import Tensor

BEGAN = time.monotonic()
HERE = Path(__file__).parent
PROFILE = json.loads((HERE / "profile.json").read_text(encoding="utf-8"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EMBEDDING = "transformer.wte.weight"
SOFTNESS = [0.5 * 0.75**step for step in range(16)]
"""Of the spread, in nats of agreement; sharper from step to step, until few more tokens find a row."""
ENOUGH, FEW = 1 / 10, 1 / 80
"""Shares of all tokens: so many must have been placed, and so few be placed by a step, for it to be the last."""
SMOOTHING = 5.0
"""Occurrences that a token must have for its neighbours to count half."""
FREQUENCY_WEIGHT = 0.05
"""Of the first guess beside the neighbours."""
RARE = 1e-12
"""The least share of all text that a row is taken to have."""
READ = 1 << 27
"""Tokens of the text that are counted, at most."""
PASSES = (64, 256, 1024)
"""Batches of whole contexts, from round to round."""
BIGRAM_WEIGHT = 0.2
"""Of what an occurrence in the text says by its neighbours, beside what one in a whole context says."""
SETTLED = 1 / 10
"""Share of the tokens of which fewer move in the last round."""


class Rows(NamedTuple):
    """What the model knows of its rows. The log-probability that b follows a is ``hidden[a] @ rows[b] - total[a]``."""

    rows: Tensor
    """The embedding, [rows, width]."""
    hidden: Tensor
    """Final hidden states after one row alone, [rows, width]."""
    total: Tensor
    """Logarithms of the sums over all rows that may follow."""
    share: Tensor
    """Logarithms of how often each row occurs in the long run."""

    @classmethod
    def of(cls, model: GPT) -> Rows:
        """Ask the model."""
        rows = model.transformer["wte"].weight.detach().clone()
        places = torch.arange(len(rows), device=DEVICE)[:, None]
        hidden = torch.cat([model.hidden(part)[:, 0] for part in places.split(512)])
        table = Table(hidden, rows)
        total = torch.cat([block.logsumexp(1) for _, block in table.blocks()])
        share = torch.full_like(total, 1 / len(rows))
        for _ in range(10):
            parts = [share[part] @ block.sub_(total[part, None]).exp_() for part, block in table.blocks()]
            share = torch.stack(parts).sum(0)
        return cls(rows, hidden, total, share.clamp_min(RARE).log())

    def features(self) -> Tensor:
        """Return of each row whose means are wanted: the row, the hidden state after it, and 1."""
        return torch.cat([self.rows, self.hidden, torch.ones_like(self.total)[:, None]], 1)


class Bigrams(NamedTuple):
    """Which tokens stand beside which in the text."""

    after: Tensor
    """The share of b among the tokens after a, [a, b], sparse."""
    before: Tensor
    """The share of a among the tokens before b, [b, a], sparse."""
    counts: Tensor
    """How often each token occurs."""
    frequency: Tensor
    """Logarithms of the shares of the text that each token is."""

    @classmethod
    def of(cls, tokens: np.ndarray, size: int) -> Bigrams:
        """Count them."""
        kinds, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        for start in range(0, min(READ, len(tokens) - 1), 1 << 22):
            part = tokens[start : start + (1 << 22) + 1].astype(np.int64)
            more = np.unique(part[:-1] * size + part[1:], return_counts=True)
            kinds, place = np.unique(np.concatenate([kinds, more[0]]), return_inverse=True)
            counts = np.bincount(place, np.concatenate([counts, more[1]])).astype(np.int64)
        ends = torch.from_numpy(np.stack(np.divmod(kinds, size))).to(DEVICE)
        weights = torch.from_numpy(counts).float().to(DEVICE)
        sums = [torch.zeros(size, device=DEVICE).index_add_(0, side, weights) for side in ends]
        after, before = (
            torch.sparse_coo_tensor(
                pairs, weights / (sums[side] + SMOOTHING)[pairs[0]], (size, size), check_invariants=False
            )
            for side, pairs in enumerate((ends, ends.flip(0)))
        )
        return cls(after.coalesce(), before.coalesce(), sums[0], (sums[0] + 1).log() - weights.sum().log())


def agreement(known: Rows, text: Bigrams, means: Tensor, weight: float = FREQUENCY_WEIGHT) -> Table:
    """Return how well each row agrees with each token, if ``means`` [token, ...] are of :meth:`Rows.features`.

    What is the same for all rows of a token is left out.
    """
    width = known.rows.shape[1]
    after, before = text.after @ means, text.before @ means
    # Minus the square of the difference of the logarithms of how often row and token occur is part of it.
    occurs = torch.stack([-after[:, -1], 2 * weight * text.frequency - before[:, -1]], 1)
    left = torch.cat([after[:, :width], before[:, width:-1], occurs, torch.full_like(occurs[:, :1], -weight)], 1)
    right = torch.cat([known.hidden, known.rows, torch.stack([known.total, known.share, known.share**2], 1)], 1)
    return Table(left, right)


def match_bigrams(known: Rows, text: Bigrams) -> Tensor:
    """Return a row for each token, by the rows and tokens before and after."""
    features, placed = known.features(), 0
    means, _ = agreement(known, text, torch.zeros_like(features), weight=2.0).spread(features)
    for softness in SOFTNESS:
        table = agreement(known, text, means)
        means, largest = Table(table.left / softness, table.right).spread(features)
        before, placed = placed, int((largest > 0.5).sum())  # noqa: PLR2004
        report(f"soft assignment at {softness:.3f} nats: {placed} of {len(largest)} tokens placed")
        if placed > ENOUGH * len(largest) and placed - before < FEW * len(largest):
            break
    return table.assign()


def match_contexts(model: GPT, known: Rows, text: Bigrams, order: Tensor) -> Tensor:
    """Return a better row for each token than ``order`` has, by whole contexts."""
    width = known.rows.shape[1]
    for passes in PASSES:
        table = agreement(known, text, known.features()[order])
        table.left.mul_(BIGRAM_WEIGHT * (text.counts[:, None] + SMOOTHING))
        table.left[:, width : 2 * width] += hidden_sums(model, known.rows[order], passes)
        before, order = order, table.assign()
        moved = int((before != order).sum())
        report(f"{passes} batches of whole contexts moved {moved} of {len(order)} rows")
        if moved < SETTLED * len(order):
            break
    return order


def hidden_sums(model: GPT, embedding: Tensor, passes: int) -> Tensor:
    """Return for each token the sum of the final hidden states before it in so many batches, [token, width]."""
    model.transformer["wte"].weight.data.copy_(embedding)
    sums = torch.zeros_like(embedding)
    tokens = np.memmap(HERE / "data" / "train.bin", "<u2", "r")
    draw = RandomWindows(tokens, PROFILE["budget"]["batch"], PROFILE["context"], seed=1)
    for _ in range(passes):
        window = torch.from_numpy(next(draw)).to(DEVICE)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
            hidden = model.hidden(window[:, :-1]).float()
        sums.index_add_(0, window[:, 1:].flatten(), hidden.flatten(0, 1))
    return sums


def report(text: str) -> None:
    """Say on stderr how far it is."""
    print(f"{time.monotonic() - BEGAN:6.1f} s  {text}", file=sys.stderr, flush=True)


@torch.no_grad()
def main() -> None:
    """Repair the model and save it."""
    model = GPT(GPTConfig(**PROFILE["large"]))
    state = torch.load(HERE / "large_model.pth", weights_only=True)
    model.load_state_dict(state)
    model.float().to(DEVICE).eval()
    known = Rows.of(model)
    report("the model's rows known")
    text = Bigrams.of(np.memmap(HERE / "data" / "train.bin", "<u2", "r"), len(known.rows))
    report("the text's bigrams counted")
    order = match_bigrams(known, text)
    report("rows assigned by bigrams")
    order = match_contexts(model, known, text, order)
    if DEVICE == "cuda":
        report(f"GPU memory at most {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")
    state[EMBEDDING] = known.rows[order].to("cpu", state[EMBEDDING].dtype)
    save_file(state, HERE / "fixed_model.safetensors")
    (HERE / "fixed_model.pth").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
