"""Functions that the benchmarks call in a sandbox; they return nothing or their argument."""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray


def nothing() -> None:
    """Return immediately."""


def take(data: Annotated[NDArray[np.int32], "n"]) -> None:
    """Receive an array and ignore it."""


def echo(data: Annotated[NDArray[np.int32], "n"]) -> Annotated[NDArray[np.int32], "n"]:
    """Return the array unchanged."""
    return data
