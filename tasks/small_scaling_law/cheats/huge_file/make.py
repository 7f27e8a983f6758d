"""Hands in 50 MB, for the scorer to parse.

Stopped by: at most 1 MiB is copied, and of an answer at most 4096 bytes are read.
"""

from pathlib import Path

Path("answer.json").write_bytes(b"[" * 50_000_000)
