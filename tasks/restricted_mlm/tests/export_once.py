"""Imports what a check of a model imports, and exports one model, which takes longer than all others after it."""

from __future__ import annotations

import safetensors.torch  # noqa: F401 - check.py imports it
import torch
from tqdm import tqdm  # type: ignore[import-untyped]

# Programs that are forked from this one would lack its other threads.
tqdm.monitor_interval = 0
torch.set_num_threads(1)
torch.export.export(torch.nn.Linear(2, 2), (torch.zeros(1, 2),), strict=False).run_decompositions({})
