"""What a profile may be called."""

from __future__ import annotations

import re

PROFILES = ("cpu", "gpu", "paper")
"""The sizes at which a task may run."""
_NAME = re.compile(rf"({'|'.join(PROFILES)})(-[a-z0-9]+)?")


def is_profile(name: object) -> bool:
    """Tell whether a profile may be called so: by its size, or by that, a dash and a word, such as ``cpu-test2``."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None
