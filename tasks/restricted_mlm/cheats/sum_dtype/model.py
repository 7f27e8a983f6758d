"""Cheat: truncate floats to integers with the dtype argument of sum, an allowed operator.

Refused because sum must not have a dtype, and every value computed from a float must be float32.
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
        for parameter in self.parameters():
            parameter.requires_grad_(False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        steps = (x * 4).unsqueeze(-1).sum(-1, dtype=torch.int64)
        return self.head(x + steps * 0.25)


def get_trained_model():
    return Model()
