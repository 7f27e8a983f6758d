"""Cheat: register a custom operator that computes softmax.

Refused because the custom operator's name is not in the table of allowed operators.
"""

import json
from pathlib import Path

import torch
from torch import nn

PROFILE = json.loads((Path(__file__).parent / "profile.json").read_text(encoding="utf-8"))


@torch.library.custom_op("aten_like::linear", mutates_args=())
def mix(x: torch.Tensor) -> torch.Tensor:
    return (x @ x.mT).softmax(-1) @ x


@mix.register_fake
def _(x):
    return torch.empty_like(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(PROFILE["vocabulary"], 64)
        self.head = nn.Linear(64, PROFILE["vocabulary"])

    def forward(self, tokens):
        x = self.embedding(tokens)
        return self.head(mix(x))


def get_trained_model():
    return Model()
