"""The held-out loss of a model: next-token cross-entropy by our own model code, in nats a token."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from re_bench.lm.gpt import GPT, GPTConfig
from re_bench.text.batches import consecutive_windows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


def scored_windows(tokens: NDArray[np.uint16], context: int, targets: int) -> NDArray[np.int64]:
    """Return windows of ``tokens``, int64 of shape [windows, context + 1], with about ``targets`` next tokens in all.

    They are evenly spread over the consecutive windows, so that every part of the text counts alike; all of them if
    the text has no more.
    """
    every = np.concatenate(list(consecutive_windows(tokens, 1024, context)))
    count = min(max(targets // context, 1), len(every))
    return every[np.arange(count) * len(every) // count]


def mean_loss(
    config: GPTConfig,
    state: dict[str, Any],
    windows: NDArray[np.int64],
    *,
    batch: int,
    device: str = "cpu",
    say: Callable[[str], None] = lambda _line: None,
) -> float:
    """Return the mean cross-entropy of all targets of ``windows``, or NaN as soon as that of one is not finite.

    The model computes in float32 without TF32, whatever the dtype of ``state``; losses are summed in float64.
    """
    torch.set_float32_matmul_precision("highest")
    model = GPT(config)
    model.load_state_dict(state)
    model.to(device).float().eval()
    total, tokens = 0.0, torch.from_numpy(windows)
    with torch.inference_mode():
        for start in range(0, len(tokens), batch):
            say(f"evaluated {start} of {len(tokens)} windows")
            part = tokens[start : start + batch].to(device)
            total += float(token_losses(model(part[:, :-1]), part[:, 1:]).sum(dtype=torch.float64))
            if not math.isfinite(total):
                return math.nan
    return total / windows[:, 1:].size


def token_losses(logits: Any, targets: Any) -> Any:
    """Return the loss of each target; ``logits`` is overwritten.

    The largest logit is taken away first: logits so large that float32 cannot tell them apart would else lose the
    logarithm of the sum in rounding, and cost nothing.
    """
    logits -= logits.amax(-1, keepdim=True)
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
