"""Count the tokens at each distance from 1 to 7 of each token, and fit the weight of each distance and side.

The weights are fitted to one part in 40 of the training text, which is not counted.
"""
# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training

import json
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
SIZE = json.loads((HERE / "profile.json").read_text(encoding="utf-8"))["vocabulary"]
OFFSETS = [offset for distance in range(1, 8) for offset in (-distance, distance)]
SMOOTHING = 200.0
POSITIONS = 4_000
"""Number of tokens that the weights are fitted to."""

tokens = np.fromfile(HERE / "data" / "train.bin", "<u2").astype(np.int64)
parts = tokens[: len(tokens) // 4096 * 4096].reshape(-1, 4096)
tokens, kept = np.delete(parts, np.s_[::40], 0).ravel(), parts[::40].ravel()
frequency = np.bincount(tokens, minlength=SIZE) + 1.0
frequency /= frequency.sum()
generator = np.random.default_rng(0)
places = generator.integers(7, len(kept) - 7, POSITIONS)
shown = generator.random((len(OFFSETS), POSITIONS)) > 0.15
features = torch.zeros(len(OFFSETS), POSITIONS, SIZE)
for number, offset in enumerate(OFFSETS):
    given, predicted = (tokens[:offset], tokens[-offset:]) if offset < 0 else (tokens[offset:], tokens[:-offset])
    counts = np.bincount(given * SIZE + predicted, minlength=SIZE * SIZE).reshape(SIZE, SIZE)
    shares = (counts + SMOOTHING * frequency) / (counts.sum(1, keepdims=True) + SMOOTHING)
    table = np.log(shares / frequency).astype(np.float16)
    np.save(HERE / f"table{number}.npy", table)
    features[number] = torch.from_numpy(table[kept[places + offset]] * shown[number][:, None])

unigrams, labels = torch.from_numpy(np.log(frequency)).float(), torch.from_numpy(kept[places])
weights = torch.full((len(OFFSETS),), 0.5, requires_grad=True)
optimizer = torch.optim.LBFGS([weights], max_iter=30)


def loss():
    """Return the loss of the weights, and compute its gradient."""
    optimizer.zero_grad()
    value = torch.nn.functional.cross_entropy(unigrams + torch.einsum("k,kpv->pv", weights, features), labels)
    value.backward()
    print(f"loss {value.item():.4f}", flush=True)
    return value


optimizer.step(loss)
np.savez(HERE / "weights.npz", unigrams=unigrams.numpy(), weights=weights.detach().numpy(), offsets=OFFSETS)
