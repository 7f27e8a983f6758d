"""Harness: evaluates our own model with a submission's values in it, in a process whose time is the submission's.

``build`` makes the model and answers with the shapes of its tensors, ``load`` takes their values group by group,
``evaluate`` turns windows of tokens into losses. No code of the submission runs here and no file of it shows, so the
process may have the tokens: a next-token model's inputs are its labels. Values alone can make it slow, and then the
limits of the sandbox end it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fix_embedding.harness.empty_model import empty_model
from re_bench.guest.refused import RefusedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_made: dict[str, Any] = {}
_values: dict[str, torch.Tensor] = {}


def build(args: dict[str, Any], _inputs: list[memoryview], _outputs: list[memoryview]) -> dict[str, list[int]]:
    """Make the model, without values, and return the shape of each of its tensors by name.

    ``args`` has ``modules`` and ``sizes``, as in :func:`empty_model`, and ``device``.
    """
    torch.set_flush_denormal(True)  # before there are other threads, which have it from this one; else 100 times slower
    model = empty_model(args["modules"], args["sizes"])
    _made.update(model=model, device=args["device"])
    return {name: list(tensor.shape) for name, tensor in model.state_dict().items()}


def load(args: dict[str, Any], inputs: list[memoryview], _outputs: list[memoryview]) -> None:
    """Take the values of the tensors ``args["names"]``, one after the other in ``inputs[0]``, of ``args["dtype"]``.

    Raises:
        RefusedError: if a value is not finite.
    """
    shapes = {name: tensor.shape for name, tensor in _made["model"].state_dict().items()}
    values = torch.from_numpy(np.frombuffer(inputs[0], args["dtype"]).copy())
    parts = values.split([math.prod(shapes[name]) for name in args["names"]])
    for name, part in zip(args["names"], parts, strict=True):
        if not bool(torch.isfinite(part).all()):
            raise RefusedError(f"{name} has values that are not finite")
        _values[name] = part.reshape(shapes[name])


def evaluate(args: dict[str, Any], inputs: list[memoryview], outputs: list[memoryview]) -> None:
    """Write the float32 loss of every next token of the int64 windows of ``args["length"]`` tokens in ``inputs``."""
    if _values:
        put_into(_made["model"], _values, _made["device"])
        _values.clear()
    windows = np.frombuffer(inputs[0], np.int64).reshape(-1, args["length"])
    np.frombuffer(outputs[0], np.float32)[:] = losses(_made["model"], windows, _made["device"]).reshape(-1)


def put_into(model: Any, state: dict[str, Any], device: str) -> None:
    """Give ``model`` the values of ``state``, in float32 without TF32, whatever their dtype is."""
    torch.set_float32_matmul_precision("highest")
    model.load_state_dict(state, assign=True)
    model.to(device).float().eval()


def losses(model: Any, windows: NDArray[np.int64], device: str) -> NDArray[np.float32]:
    """Return the loss of each next token of ``windows`` [windows, length], in nats, [windows, length - 1]."""
    tokens = torch.from_numpy(windows.copy()).to(device)
    with torch.inference_mode():
        result: NDArray[np.float32] = token_losses(model(tokens[:, :-1]), tokens[:, 1:]).cpu().numpy()
    return result.reshape(len(windows), -1)


def token_losses(logits: Any, targets: Any) -> Any:
    """Return the loss of each target; ``logits`` is overwritten.

    The largest logit is taken away first: logits so large that float32 cannot tell them apart would else lose the
    logarithm of the sum in rounding, and cost nothing.
    """
    logits -= logits.amax(-1, keepdim=True)
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
