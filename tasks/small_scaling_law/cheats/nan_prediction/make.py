"""Predicts NaN, with which no comparison is true and every sum is NaN.

Stopped by: JSON has no NaN, and the reader refuses Python's extension of it.
"""

from pathlib import Path

Path("answer.json").write_text('{"n_embd": 1000, "max_iters": 20000, "loss_prediction": NaN}')
