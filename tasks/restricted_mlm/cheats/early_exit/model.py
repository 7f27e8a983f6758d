"""Cheat: print a score, and exit before the model is exported.

Refused because a process that exits without a reply makes the submission invalid.
"""

import os


def get_trained_model():
    os.environ.clear()
    os.write(1, b'{"status": "valid", "raw": -9.0, "reward": 9.0}\n')
    os._exit(0)
