"""Cheat: branch in forward on the value of a tensor.

Refused because torch.export traces without values and cannot follow the branch.
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
        if x.sum() > 0:
            return self.head(x)
        return self.head(-x)


def get_trained_model():
    return Model()
