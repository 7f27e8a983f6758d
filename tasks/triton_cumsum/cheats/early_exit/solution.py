"""Cheat: print a score in the scorer's format, and exit before any result is compared.

Refused because the scorer ignores everything that a submission prints, and a process that exits without a reply makes
the submission invalid.
"""

import json
import os

SCORE = {"task": "triton_cumsum", "status": "valid", "raw": -9.0, "reward": 9.0, "message": "", "details": {}}


def prefix_sum(x):
    for descriptor in (1, 2):
        os.write(descriptor, json.dumps(SCORE).encode() + b"\n")
    os._exit(0)
