"""Profile ``cpu``: what its two processes are asked to do.

One has the submission: :func:`load_submission` and :func:`record`. Nothing that it answers is believed, as it shares
its memory with the submission. The other, where the submission's module never was, replays what was recorded on other
values, so that a trace cannot carry any part of an answer, and counts what it costs: :func:`replay`. Both run with
``TRITON_INTERPRET=1``.
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
    from triton_cumsum.sandboxed import recorder, submission  # noqa: PLC0415 - import torch, which the scorer does without

    recorder.install()
    _loaded["prefix_sum"] = submission.load(directory, "solution")


def record(
    x: Annotated[NDArray[np.int32], "length"],
) -> tuple[Annotated[NDArray[np.int32], "length"], str]:
    """Call ``prefix_sum`` once, and return its result and the steps that it took, as JSON.

    Raises:
        InvalidSubmissionError: if it raises, changes its input, or returns something else than a new int32 tensor.
    """
    from triton_cumsum.sandboxed import recorder  # noqa: PLC0415

    return recorder.recorded(_loaded["prefix_sum"], x)


def replay(
    x: Annotated[NDArray[np.int32], "length"], trace: str
) -> tuple[Annotated[NDArray[np.int32], "length"], list[Step]]:
    """Take the recorded steps on other values, and return their result and what each step cost, in order.

    Raises:
        InvalidSubmissionError: if the trace is malformed, or holds what the profile does not allow.
    """
    from triton_cumsum.sandboxed import meter  # noqa: PLC0415

    return meter.replay(x, trace)
