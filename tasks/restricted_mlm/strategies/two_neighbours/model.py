"""Predict a token from the tokens on its left and right, which are assumed to be independent given the token."""
# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training

import json
from pathlib import Path

import numpy as np
import torch
from torch import nn

HERE = Path(__file__).parent
MASK = json.loads((HERE / "profile.json").read_text(encoding="utf-8"))["mask_id"]
WEIGHT = 0.9
"""Weight of the log ratios, below 1 because neighbours are not independent."""


class Model(nn.Module):
    """The sum of the log frequencies and one row of each table."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("unigrams", "left", "right"):
            table = torch.from_numpy(np.load(HERE / f"{name}.npy").astype(np.float32))
            self.register_buffer(name, table if name == "unigrams" else WEIGHT * table)

    def forward(self, tokens):
        """Return logits [batch, length, vocabulary] of token ids [batch, length]."""
        edge = torch.full((tokens.shape[0], 1), MASK, dtype=torch.int64)
        left, right = torch.cat([edge, tokens[:, :-1]], 1), torch.cat([tokens[:, 1:], edge], 1)
        return self.unigrams + self.left[left] + self.right[right]


def get_trained_model():
    """Return the model; the row of a masked neighbour is 0, because no counts are known for it."""
    return Model()
