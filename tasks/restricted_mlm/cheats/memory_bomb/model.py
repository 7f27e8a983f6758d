"""Cheat: request 10^12 elements with a few operators.

Refused because all shapes are checked, without allocating memory, before the graph runs.
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
        wide = x.sum(-1)[..., None, None].expand(-1, -1, 100_000, 10_000)
        return self.head(x + wide.sum((-2, -1)).unsqueeze(-1))


def get_trained_model():
    return Model()
