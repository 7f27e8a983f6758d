"""Submit a width with thousands of digits, hoping that arithmetic takes forever or a float overflows.

Stopped because the ranges of numbers are checked before anything is computed.
"""

from pathlib import Path

Path("answer.json").write_text('{"n_embd": 1%s, "max_iters": 1, "loss_prediction": 2.0}' % ("0" * 3000))
