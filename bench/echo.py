"""Functions for a sandbox that do nothing, or copy."""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray


def nothing() -> None:
    """Return at once."""


def take(data: Annotated[NDArray[np.int32], "n"]) -> None:
    """Take an array."""


def echo(data: Annotated[NDArray[np.int32], "n"]) -> Annotated[NDArray[np.int32], "n"]:
    """Return the array."""
    return data
