"""Cheat: take a value out of a tensor as a Python number and compute with that.

Stopped because the operator that takes the value out is in the graph, and not in the table.
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
        largest = x.sum().item()
        return self.head(x * (1 / largest))


def get_trained_model():
    return Model()
