"""Valid names of profiles."""

from __future__ import annotations

import re

PROFILES = ("cpu", "gpu", "paper")
"""The sizes at which a task may run."""
_NAME = re.compile(rf"({'|'.join(PROFILES)})(-[a-z0-9]+)?")


def is_profile(name: object) -> bool:
    """Return whether ``name`` is a size, or a size, a dash and a word, such as ``cpu-test2``."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None
