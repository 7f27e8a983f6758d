"""Count the tokens next to each token of the training text, and save log ratios to the tokens' frequencies."""
# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training

import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SIZE = json.loads((HERE / "profile.json").read_text(encoding="utf-8"))["vocabulary"]
SMOOTHING = 50.0
"""Occurrences at which a token's counts have half of the weight; the frequencies of all tokens have the rest."""

tokens = np.fromfile(HERE / "data" / "train.bin", "<u2").astype(np.int64)
frequency = np.bincount(tokens, minlength=SIZE) + 1.0
frequency /= frequency.sum()
np.save(HERE / "unigrams.npy", np.log(frequency).astype(np.float32))
for name, given, predicted in (("left", tokens[:-1], tokens[1:]), ("right", tokens[1:], tokens[:-1])):
    counts = np.bincount(given * SIZE + predicted, minlength=SIZE * SIZE).reshape(SIZE, SIZE)
    shares = (counts + SMOOTHING * frequency) / (counts.sum(1, keepdims=True) + SMOOTHING)
    np.save(HERE / f"{name}.npy", np.log(shares / frequency).astype(np.float16))
