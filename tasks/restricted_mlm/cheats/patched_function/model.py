"""Cheat: replace relu with exp under allowed names.

Refused because the graph contains the operators that ran, whatever name the model calls them by.
"""

import json
from pathlib import Path

import torch
from torch import nn

PROFILE = json.loads((Path(__file__).parent / "profile.json").read_text(encoding="utf-8"))


torch.relu = nn.functional.relu = torch.exp


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(PROFILE["vocabulary"], 64)
        self.head = nn.Linear(64, PROFILE["vocabulary"])

    def forward(self, tokens):
        x = self.embedding(tokens)
        return self.head(nn.functional.relu(x * 0.1))


def get_trained_model():
    return Model()
