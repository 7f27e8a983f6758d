"""Where runs are: a directory for each, beside the log of the evaluation unless another place is named."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log._samples import sample_active

_LOCAL_SCHEMES = frozenset({"", "file"})
_OTHER_CHARACTERS = re.compile(r"[^\w.-]+")
_NAME_CHARS = 60


def new_run_directory(parent: str | None) -> Path:
    """Make the directory of a new run.

    Args:
        parent: where it is made; None for ``LOG.mlab`` beside the log ``LOG.eval``, or for the system's temporary
            directory if the log is in no local one.

    Raises:
        PrerequisiteError: if it cannot be made.
    """
    sample = sample_active()
    location = urlsplit(sample.log_location) if sample else None
    if parent is not None:
        directory = Path(parent)
    elif location is not None and location.path and location.scheme in _LOCAL_SCHEMES:
        directory = Path(location.path).with_suffix(".mlab")
    else:
        directory = Path(tempfile.gettempdir(), "mlab-runs")
    name = f"{sample.sample.id}_{sample.epoch}" if sample else "run"
    prefix = _OTHER_CHARACTERS.sub("-", name)[:_NAME_CHARS].lstrip(".") + "_"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=prefix, dir=directory)).absolute()
    except OSError as error:
        raise PrerequisiteError(
            f"mlab: {directory} cannot have the traces: {error.strerror}; give trace_directory=DIR"
        ) from None
