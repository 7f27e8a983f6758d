"""Predicts a number that is JSON, but becomes an infinity.

Stopped by: the reader wants a finite number of at most 1000 nats.
"""

from pathlib import Path

Path("answer.json").write_text('{"n_embd": 1000, "max_iters": 20000, "loss_prediction": 1e999}')
