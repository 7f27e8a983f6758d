"""Gives a width of thousands of digits, for arithmetic to take for ever or a float to overflow.

Stopped by: numbers have ranges, which are looked at before anything is computed.
"""

from pathlib import Path

Path("answer.json").write_text('{"n_embd": 1%s, "max_iters": 1, "loss_prediction": 2.0}' % ("0" * 3000))
