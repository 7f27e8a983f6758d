"""Cheat: replace the exporter's graph with a forged graph in which an operator's name is an attribute path.

A careless reader would resolve the path with getattr and reach a forbidden operator. Refused because names are only
looked up in the table of allowed operators.
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
