"""Cheat: replace the exporter's graph with a forged graph in which an allowed sum has a dtype that truncates.

Refused because the scorer checks every argument of a graph, even if the submission has forged the graph.
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
        return self.head(x + x.sum(-1, keepdim=True))


def forged(graph):
    text = original(graph)
    return text.replace(
        '"args":[{"node":0},[-1],true],"kwargs":{}', '"args":[{"node":0},[-1],true],"kwargs":{"dtype":4}'
    )


graphs = sys.modules["restricted_mlm.sandboxed.restricted.graph"]
original, graphs.dump = graphs.dump, forged


def get_trained_model():
    return Model()
