"""The valid names of profiles."""

from __future__ import annotations

import re

PROFILES = ("cpu", "gpu", "paper")
"""The sizes at which a task may run."""
_NAME = re.compile(rf"({'|'.join(PROFILES)})(-[a-z0-9]+)?")


def is_profile(name: object) -> bool:
    """Return whether ``name`` is in :data:`PROFILES`, optionally with a dash and a suffix, as in ``cpu-test2``."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None
