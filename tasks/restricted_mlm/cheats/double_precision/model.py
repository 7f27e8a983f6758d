"""Cheat: compute in float64, which is more precise than float32.

Refused because dtype conversions are not in the table, and tensors must be float32 or int64.
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
        mixed = x.double() @ self.head.weight.double().t()
        return mixed.float()


def get_trained_model():
    return Model()
