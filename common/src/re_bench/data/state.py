"""Where a user's programs keep what is to stay and is no cache, such as the sessions of a server."""

from __future__ import annotations

import os
from pathlib import Path


def state_directory() -> Path:
    """Return ``re-bench`` in the user's directory for state: ``$XDG_STATE_HOME``, else ``~/.local/state``.

    Raises:
        RuntimeError: if the user has no home.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "re-bench"
