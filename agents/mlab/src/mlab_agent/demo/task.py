"""The task of the demonstration: a script that trains badly."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["INSTRUCTIONS", "TRAIN", "lay_out"]

INSTRUCTIONS = """\
`train.py` fits a line and a square to data by gradient descent, and prints the loss on held-out data. Bring that loss
below 0.02 by changing its settings in `train.py`, the learning rate and the number of epochs; leave the data, the model
and the way in which the loss is computed as they are. It must not take longer than ten seconds. Give the loss that the
script then prints as your final answer, as a number and nothing else.
"""

TRAIN = '''\
"""Fit y = a + b x + c x^2 by gradient descent, in plain Python."""

import random

LEARNING_RATE = 0.001
EPOCHS = 20


def data(count, seed):
    numbers = random.Random(seed)
    xs = [numbers.uniform(-1, 1) for _ in range(count)]
    return [(x, 0.5 - 1.5 * x + 2.0 * x * x + numbers.gauss(0, 0.1)) for x in xs]


def predict(weights, x):
    return weights[0] + weights[1] * x + weights[2] * x * x


def loss(weights, points):
    return sum((predict(weights, x) - y) ** 2 for x, y in points) / len(points)


def train(points):
    weights = [0.0, 0.0, 0.0]
    for _ in range(EPOCHS):
        errors = [(predict(weights, x) - y, x) for x, y in points]
        for power in range(3):
            gradient = sum(2 * error * x**power for error, x in errors) / len(points)
            weights[power] -= LEARNING_RATE * gradient
    return weights


print(f"held-out loss: {loss(train(data(200, 0)), data(100, 1)):.4f}")
'''


def lay_out(directory: Path) -> None:
    """Write the workspace into a new directory."""
    directory.mkdir(parents=True)
    (directory / "train.py").write_text(TRAIN, encoding="utf-8")
    (directory / "instructions.txt").write_text(INSTRUCTIONS, encoding="utf-8")
