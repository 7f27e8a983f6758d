"""Keep the first windows of the training text."""

import json
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
LENGTH = json.loads((HERE / "profile.json").read_text(encoding="utf-8"))["length"]
WINDOWS = 1024

tokens = np.fromfile(HERE / "data" / "train.bin", "<u2", WINDOWS * LENGTH).astype(np.int64)
torch.save(torch.from_numpy(tokens).reshape(WINDOWS, LENGTH), HERE / "windows.pt")
