"""Time train.py, and compare its weights with those of the first run, which ``weights.json`` keeps."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

KEPT = Path("weights.json")


def main() -> None:
    """Print the time and the largest difference of a weight; run this once before changing train.py."""
    started = time.perf_counter()
    printed = subprocess.check_output([sys.executable, "train.py", "text.txt"], text=True)
    seconds = time.perf_counter() - started
    if not KEPT.exists():
        KEPT.write_text(printed, encoding="utf-8")
    rows = zip(json.loads(printed), json.loads(KEPT.read_text(encoding="utf-8")), strict=True)
    difference = max(abs(own - kept) for pair in rows for own, kept in zip(*pair, strict=True))
    print(f"{seconds:.3f} s; largest difference from the first run's weights: {difference:.1e}")


if __name__ == "__main__":
    main()
