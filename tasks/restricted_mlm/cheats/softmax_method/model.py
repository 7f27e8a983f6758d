"""Cheat: compute attention with the tensor method ``softmax``.

Refused because every operator of the exported graph must be in the table, however the model calls it.
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
        return self.head((x @ x.mT).softmax(-1) @ x)


def get_trained_model():
    return Model()
