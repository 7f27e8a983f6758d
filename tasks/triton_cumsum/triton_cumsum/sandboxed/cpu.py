"""Profile ``cpu``: the functions of its two processes.

The runner has the submission (:func:`load_submission`, :func:`record`); its replies are untrusted, as it shares memory
with the submission. The meter never loads the submission's module. It replays the trace on other values, so that a
trace cannot contain part of an answer, and counts its cost (:func:`replay`). Both run with ``TRITON_INTERPRET=1``.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from triton_cumsum.sandboxed.device import Step

_loaded: dict[str, Any] = {}


def load_submission(directory: Path) -> None:
    """Import ``solution.py`` and keep its ``prefix_sum``.

    Raises:
        InvalidSubmissionError: if the file, or the function in it, is missing or fails to import.
    """
    from triton_cumsum.sandboxed import recorder, submission  # noqa: PLC0415 - they import torch, unlike the scorer

    recorder.install()
    _loaded["prefix_sum"] = submission.load(directory, "solution")


def record(
    x: Annotated[NDArray[np.int32], "length"],
) -> tuple[Annotated[NDArray[np.int32], "length"], str]:
    """Call ``prefix_sum`` once, and return its result and its steps as JSON.

    Raises:
        InvalidSubmissionError: if it raises, changes its input, or returns something else than a new int32 tensor.
    """
    from triton_cumsum.sandboxed import recorder  # noqa: PLC0415

    return recorder.recorded(_loaded["prefix_sum"], x)


def replay(
    x: Annotated[NDArray[np.int32], "length"], trace: str
) -> tuple[Annotated[NDArray[np.int32], "length"], list[Step]]:
    """Replay the recorded steps on other values, and return their result and the cost of each step, in order.

    Raises:
        InvalidSubmissionError: if the trace is malformed, or contains something not allowed.
    """
    from triton_cumsum.sandboxed import meter  # noqa: PLC0415

    return meter.replay(x, trace)
