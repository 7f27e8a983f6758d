"""Submit a file of 50 MB, hoping that the scorer parses it.

Stopped because at most 1 MiB is copied, and an answer has at most 4096 bytes.
"""

from pathlib import Path

Path("answer.json").write_bytes(b"[" * 50_000_000)
