"""Cheat: read memory beyond a tensor with as_strided, to find the labels.

Refused because as_strided must stay inside its tensor. The process that runs the graph has no labels anyway.
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
        around = torch.as_strided(x.clone(), x.shape, x.stride(), 1 << 20)
        return self.head(x + around)


def get_trained_model():
    return Model()
