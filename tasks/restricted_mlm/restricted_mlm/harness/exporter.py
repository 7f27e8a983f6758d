"""The process that runs the submission: imports ``model.py`` and writes its model down.

``export`` answers with the graph as text and the size of its tensors as safetensors, ``tensors`` hands these over.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from restricted_mlm.harness.restricted import export as exports
from restricted_mlm.harness.restricted import graph as graphs

_kept: list[bytes] = []


def export(args: dict[str, Any], _inputs: list[Any], _outputs: list[Any]) -> dict[str, Any]:
    """Import the model and write it down.

    ``args`` has ``directory``, where the submission is, and ``shape`` [batch, length].
    """
    directory = Path(args["directory"])
    os.chdir(directory)
    sys.path.insert(0, str(directory))  # after our own imports, so that no name of ours is shadowed
    torch.manual_seed(0)
    model = importlib.import_module("model").get_trained_model()
    graph, tensors = exports.export(model, args["shape"], directory)
    _kept[:] = [save(tensors)]
    return {"graph": graphs.dump(graph), "bytes": len(_kept[0])}


def tensors(_args: dict[str, Any], _inputs: list[Any], outputs: list[Any]) -> None:
    """Hand the tensors over."""
    outputs[0][:] = _kept[0]
