"""Cheat: keep the scorer busy for hours with a graph of a few operators.

Refused because the work is counted before the graph runs.
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

    def forward(self, tokens):
        x = self.embedding(tokens)
        wide = x.repeat(1, 1, 40)
        for _ in range(200):
            wide = wide @ (wide.mT @ wide)
        return self.head(x + wide[..., :64])


def get_trained_model():
    return Model()
