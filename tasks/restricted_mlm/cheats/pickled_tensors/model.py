"""Cheat: send a pickle that runs code instead of the tensors.

Refused because the scorer reads tensors only as safetensors, a format without code.
"""

import json
import os
import pickle
from pathlib import Path

import numpy
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


def forged(data, dtype):
    if isinstance(data, bytes):  # the tensors; other buffers stay unchanged
        data = pickle.dumps(Payload()).ljust(len(data), b"\0")
    return buffer(data, dtype)


buffer, numpy.frombuffer = numpy.frombuffer, forged


def get_trained_model():
    return Model()
