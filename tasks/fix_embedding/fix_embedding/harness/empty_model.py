"""Our own model without values: what a submission's tensors must be like, and what they are put into."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping


def empty_model(modules: str, sizes: Mapping[str, int]) -> Any:
    """Return the model on torch's device ``meta``.

    Args:
        modules: the directory of ``gpt.py``.
        sizes: the fields of its ``GPTConfig``.
    """
    sys.path.insert(0, modules)
    gpt = importlib.import_module("gpt")
    with torch.device("meta"):
        return gpt.GPT(gpt.GPTConfig(**sizes))


def described(model: Any, dtype: str) -> dict[str, dict[str, Any]]:
    """Return what the loader and an agent are told of a model's tensors: by name, its ``shape`` and ``dtype``."""
    return {name: {"shape": list(tensor.shape), "dtype": dtype} for name, tensor in model.state_dict().items()}
