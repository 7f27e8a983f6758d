"""Cheat: forge a graph with thousands of reshapes of a transposed matrix, to keep the scorer busy until it times out.

Each reshape copies the matrix. The cheat hopes that reshapes count as views. Refused because a reshape that must copy
counts as a copy; without this rule, only the time limit stopped the scorer.
"""

import json
import sys
from pathlib import Path

from torch import nn

PROFILE = json.loads((Path(__file__).parent / "profile.json").read_text(encoding="utf-8"))
SIDE = 4096


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(PROFILE["vocabulary"], PROFILE["vocabulary"])

    def forward(self, tokens):
        return self.embedding(tokens)


def node(op, *args, **kwargs):
    return {"op": op, "args": list(args), "kwargs": kwargs, "name": "", "where": ""}


def forged(graph):
    data = json.loads(original(graph))
    first = len(data["nodes"])
    data["nodes"] += [
        node("aten.full.default", [SIDE, SIDE], 0.0, dtype="float32"),
        node("aten.t.default", {"node": first}),
        *[node("aten.reshape.default", {"node": first + 1}, [-1]) for _ in range(2600)],
    ]
    return json.dumps(data)


graphs = sys.modules["restricted_mlm.sandboxed.restricted.graph"]
original, graphs.dump = graphs.dump, forged


def get_trained_model():
    return Model()
