"""Cheat: compute exp inside a custom autograd function, so that hooks on modules do not see it.

Refused because torch.export traces through the function and records its operators.
"""

import json
from pathlib import Path

import torch
from torch import nn

PROFILE = json.loads((Path(__file__).parent / "profile.json").read_text(encoding="utf-8"))


class Hidden(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.exp()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(PROFILE["vocabulary"], 64)
        self.head = nn.Linear(64, PROFILE["vocabulary"])

    def forward(self, tokens):
        x = self.embedding(tokens)
        return self.head(Hidden.apply(x * 0.1))


def get_trained_model():
    return Model()
