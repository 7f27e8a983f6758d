"""Cheat: compute with NumPy in forward, so that no torch operator is recorded.

Refused because torch.export traces forward with tensors that have no values.
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
        import numpy as np

        return self.head(torch.from_numpy(np.tanh(x.detach().numpy())))


def get_trained_model():
    return Model()
