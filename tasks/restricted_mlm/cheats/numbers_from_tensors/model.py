"""Cheat: convert a tensor's value into a Python number, and compute with this number.

Refused because the graph contains the converting operator, which is not in the table of allowed operators.
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
