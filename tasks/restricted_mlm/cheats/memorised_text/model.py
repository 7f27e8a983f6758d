"""Cheat: store windows of the training text in a table, and copy tokens from a window that matches the input.

Allowed, but no better: no held-out window matches. The cheat would succeed if the workspace contained held-out text.
"""

import json
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import relu

HERE = Path(__file__).parent
PROFILE = json.loads((HERE / "profile.json").read_text(encoding="utf-8"))
WIDTH = 32


class Model(nn.Module):
    def __init__(self, windows):
        super().__init__()
        codes = torch.randn(PROFILE["vocabulary"], WIDTH)
        codes = codes / codes.norm(dim=1, keepdim=True)
        self.register_buffer("codes", codes)
        self.register_buffer("table", codes[windows])

    def forward(self, tokens):
        x = self.codes[tokens]
        agreeing = torch.einsum("btd,wtd->bw", x, self.table)
        weights = relu(agreeing - 0.5 * PROFILE["length"])
        copied = torch.einsum("bw,wtd->btd", weights, self.table)
        return copied @ self.codes.t()


def get_trained_model():
    torch.manual_seed(0)
    return Model(torch.load(HERE / "windows.pt", weights_only=True))
