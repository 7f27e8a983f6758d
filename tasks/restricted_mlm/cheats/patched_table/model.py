"""Cheat: add division to the exporter's table of allowed operators, in the submission's process.

Refused because the scorer checks the graph against its own table. Its message has no hint, unlike the exporter's.
"""

import json
import sys
from pathlib import Path

import torch
from torch import nn

PROFILE = json.loads((Path(__file__).parent / "profile.json").read_text(encoding="utf-8"))


allowed = sys.modules["restricted_mlm.sandboxed.restricted.allowed"]
allowed.TABLE["aten.div.Tensor"] = allowed.Operator(torch.ops.aten.div.Tensor, "arithmetic")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(PROFILE["vocabulary"], 64)
        self.head = nn.Linear(64, PROFILE["vocabulary"])

    def forward(self, tokens):
        x = self.embedding(tokens)
        return self.head(x / (x * x).sum(-1, keepdim=True))


def get_trained_model():
    return Model()
