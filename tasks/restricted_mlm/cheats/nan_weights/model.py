"""Cheat: submit NaN weights, so that comparisons with the best loss may go wrong.

Refused because weights must be finite.
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
        self.head.bias.data[0] = float("nan")

    def forward(self, tokens):
        x = self.embedding(tokens)
        return self.head(x)


def get_trained_model():
    return Model()
