"""Predict a token from the tokens up to 7 positions away: the log frequencies plus a weighted row for each of them."""
# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training

import json
from pathlib import Path

import numpy as np
import torch
from torch import nn

HERE = Path(__file__).parent
MASK = json.loads((HERE / "profile.json").read_text(encoding="utf-8"))["mask_id"]


class Model(nn.Module):
    """A table of log ratios for each offset."""

    def __init__(self) -> None:
        super().__init__()
        fitted = np.load(HERE / "weights.npz")
        self.offsets = fitted["offsets"].tolist()
        self.register_buffer("unigrams", torch.from_numpy(fitted["unigrams"]))
        for number, weight in enumerate(fitted["weights"]):
            table = weight * np.load(HERE / f"table{number}.npy").astype(np.float32)
            self.register_buffer(f"table{number}", torch.from_numpy(table))

    def forward(self, tokens):
        """Return logits [batch, length, vocabulary] of token ids [batch, length]."""
        batch, length = tokens.shape
        edge = torch.full((batch, 7), MASK, dtype=torch.int64)
        padded = torch.cat([edge, tokens, edge], 1)
        logits = self.unigrams
        for number, offset in enumerate(self.offsets):
            logits = logits + getattr(self, f"table{number}")[padded[:, 7 + offset : 7 + offset + length]]
        return logits


def get_trained_model():
    """Return the model; the row of a masked token is 0, because no counts are known for it."""
    return Model()
