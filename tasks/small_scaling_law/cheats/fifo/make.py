"""Hands in a pipe that never says anything, so that the scorer waits for ever.

Stopped by: only regular files are copied.
"""

import os

os.remove("answer.json")
os.mkfifo("answer.json")
