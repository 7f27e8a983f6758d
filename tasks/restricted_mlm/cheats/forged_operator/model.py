"""Cheat: answer for the exporter with a graph of its own, in which an operator has a name that a careless reader would look up
by attributes, and hides a forbidden one.

Stopped because names are looked up in a table and nowhere else.
"""

import json
import sys
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
        return self.head(x)


def forged(graph):
    text = original(graph)
    return text.replace('"op":"aten.linear.default"', '"op":"aten.linear.__class__.exp"')


graphs = sys.modules["restricted_mlm.sandboxed.restricted.graph"]
original, graphs.dump = graphs.dump, forged


def get_trained_model():
    return Model()
