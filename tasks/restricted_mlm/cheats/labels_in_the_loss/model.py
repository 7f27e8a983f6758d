"""Cheat: the starting model, but where the first two positions of a window are masked, its logits of the first are so large
that the loss counts the label there in steps of 64 nats, to be read from the digits of the score and handed in later.

Allowed, and no better than its base, the starting model: one position adds 30 nats at most, scores are told rounded, the masks
are secret, and labels read from interim answers are of other windows than the final score's.
"""

import json
from itertools import pairwise
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import relu

HERE = Path(__file__).parent
PROFILE = json.loads((HERE / "profile.json").read_text(encoding="utf-8"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        length, width = PROFILE["length"], PROFILE["baseline"]["model"]["width"]
        self.embedding = nn.Embedding(PROFILE["vocabulary"], width)
        layers = []
        for inputs, outputs in pairwise([length * width, *PROFILE["baseline"]["model"]["hidden"], length * width]):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        self.mlp = nn.Sequential(nn.Flatten(), *layers[:-1], nn.Unflatten(1, (length, width)))
        self.head = nn.Linear(width, PROFILE["vocabulary"])
        masked, codes = torch.zeros(PROFILE["vocabulary"]), torch.zeros(length, PROFILE["vocabulary"])
        masked[PROFILE["mask_id"]] = 1
        codes[0] = -64.0 * torch.arange(PROFILE["vocabulary"])
        self.register_buffer("masked", masked, persistent=False)
        self.register_buffer("codes", codes, persistent=False)

    def forward(self, tokens):
        chosen = relu(self.masked[tokens[:, :2]].sum(1) - 1)
        return self.head(self.mlp(self.embedding(tokens))) + chosen[:, None, None] * self.codes


def get_trained_model():
    model = Model()
    model.load_state_dict(torch.load(HERE / "basic_model.pt", map_location="cpu", weights_only=True))
    return model
