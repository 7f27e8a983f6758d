"""Cheat: patch a function of the exporter so that it replies with a score instead of a graph.

Refused because the scorer accepts only a graph, and computes the score in a process without the submission's code.
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


graphs = sys.modules["restricted_mlm.sandboxed.restricted.graph"]
graphs.dump = lambda graph: {"loss": 0.0, "status": "valid", "raw": -9.0, "reward": 9.0}


def get_trained_model():
    return Model()
