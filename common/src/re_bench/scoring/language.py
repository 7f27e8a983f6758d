"""What the scorers of the language tasks share: held-out text, its two parts, the logarithm of a loss above a floor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from re_bench.data.instances import secret_seed
from re_bench.errors import InvalidSubmissionError, ReBenchError, UsageError
from re_bench.text.prepare import open_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from re_bench.task.interface import Job

MOST_NATS = 30.0
"""What one token adds to a loss at most, so that none can carry labels in the digits of the mean."""
_NEIGHBOURS = 4


def heldout_tokens(job: Job[Any], name: str) -> NDArray[np.uint16]:
    """Return the held-out tokens of the text ``name``.

    Raises:
        UsageError: if it is not prepared here; names the command that prepares the task's profile.
        ReBenchError: as :func:`re_bench.text.open_text`.
    """
    try:
        return open_text(name).heldout
    except UsageError as error:
        command = f"re-bench prepare {job.task.name} --profile {job.profile_name}"
        raise UsageError(f"the text {name} is not prepared here; run: {command}") from error


def public_windows(number: int, purpose: str) -> NDArray[np.bool_]:
    """Tell of each window of a text whether it counts for public scores; all others count for the private one.

    It is one of every four neighbours, so that both parts are alike, and a secret of the machine decides which.

    Args:
        number: of windows, in the text's order.
        purpose: as for :func:`re_bench.data.instances.secret_seed`.
    """
    groups = -(-number // _NEIGHBOURS)
    draw = np.random.Philox(key=secret_seed(purpose))  # its raw numbers, because numpy promises that these never change
    chosen = draw.random_raw(groups) % np.uint64(_NEIGHBOURS)
    public: NDArray[np.bool_] = (np.arange(_NEIGHBOURS) == chosen[:, None]).reshape(-1)[:number]
    return public


def log_above_floor(loss: float, floor: float) -> float:
    """Return ln(loss - floor), the raw score of a loss in nats; the floor is what no model reaches.

    Raises:
        InvalidSubmissionError: if the loss is not finite.
        ReBenchError: if it is so low that the floor is wrong.
    """
    if not math.isfinite(loss):
        raise InvalidSubmissionError("the loss is not finite: the weights are so large that logits overflow")
    if loss <= floor:
        raise ReBenchError(f"a loss of {loss:.6f} is not above the floor of {floor}; the task's floor is too high")
    return math.log(loss - floor)
