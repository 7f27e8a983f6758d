"""The process that runs the graph, where nothing of the submission is but the graph and its tensors.

``load`` takes both, ``run`` turns batches of tokens into the logits of the positions it is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from restricted_mlm.harness.restricted import graph as graphs
from restricted_mlm.harness.restricted import plan as plans
from restricted_mlm.harness.restricted.interpret import Interpreter, load_tensors
from restricted_mlm.harness.restricted.refusal import RefusedError

_models: list[Interpreter] = []


def load(args: dict[str, Any], inputs: list[Any], _outputs: list[Any]) -> dict[str, Any]:
    """Read graph and tensors, check them, and run them on random tokens, where a reason may say all.

    ``args`` has ``shape`` [batch, length], ``vocabulary``, ``limits``, the most ``bytes`` of all tensors, and
    ``device``. The answer has the model's ``parameters`` and ``operators``, and the ``operations`` of a batch.
    """
    torch.set_flush_denormal(True)  # before there are other threads, which have it from this one; else 100 times slower
    text, data = (bytes(view) for view in inputs)
    graph = graphs.parse(text.decode("utf-8", "surrogatepass"))  # all that is not ASCII is refused there
    if graph.bytes > args["bytes"]:
        raise RefusedError(f"the model's tensors have {graph.bytes:,} bytes; at most {args['bytes']:,} are allowed")
    plan = plans.plan(graph, args["shape"], args["vocabulary"], plans.Limits(**args["limits"]))
    _models[:] = [Interpreter(graph, plan, load_tensors(graph, data), args["device"])]
    tokens = np.random.default_rng(0).integers(args["vocabulary"], size=args["shape"])
    tokens.flat[:2] = 0, args["vocabulary"] - 1
    _models[0](torch.from_numpy(tokens))
    return {"parameters": graph.parameters, "operators": len(graph.nodes), "operations": float(plan.operations)}


def run(args: dict[str, Any], inputs: list[Any], outputs: list[Any]) -> None:
    """Write the logits, float32 [positions, vocabulary], of the int64 ``positions`` in the int64 tokens of a batch."""
    tokens, positions = (torch.from_numpy(np.frombuffer(view, dtype=np.int64).copy()) for view in inputs)
    logits = _models[0](tokens.reshape(args["shape"]))
    chosen = logits.flatten(0, 1)[positions.to(logits.device)]
    np.frombuffer(outputs[0], dtype=np.float32)[:] = chosen.cpu().flatten().numpy()
