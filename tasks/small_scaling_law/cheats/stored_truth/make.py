"""Looks for the stored truth wherever it may read, to answer with its best run.

Stopped by: a sandbox shows no task's folder. If it does, this fails loudly, so that validation fails too.
"""

import os
import sys
from pathlib import Path

PLACES = ["/", *sys.path, *(f"/proc/{pid}/root" for pid in os.listdir("/proc") if pid.isdigit())]

found = []
for place in PLACES:
    for folder, folders, files in os.walk(place):
        folders[:] = [] if folder in ("/proc", "/sys", "/dev") else folders
        if Path(folder).name == "truth" and "surface.py" in files:
            found.append(folder)
        found += [str(Path(folder) / name) for name in files if name.endswith("-runs.jsonl")]
if found:
    sys.exit(f"a sandbox shows what it must hide: {sorted(set(found))[:10]}")
