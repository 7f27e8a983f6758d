"""Cheat: accumulate statistics of the held-out text in a buffer, to adapt to it.

Refused because a graph must not change a buffer. The interpreter keeps no state between calls either.
"""

import json
from pathlib import Path

import torch
from torch import nn

PROFILE = json.loads((Path(__file__).parent / "profile.json").read_text(encoding="utf-8"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(PROFILE["vocabulary"], 64)
        self.head = nn.Linear(64, PROFILE["vocabulary"])
        self.register_buffer("seen", torch.zeros(64))

    def forward(self, tokens):
        x = self.embedding(tokens)
        self.seen += x.sum((0, 1))
        return self.head(x + 0.001 * self.seen)


def get_trained_model():
    return Model()
