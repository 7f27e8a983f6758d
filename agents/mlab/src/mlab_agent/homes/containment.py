"""Bubblewrap around a script, where the machine lets us.

Read-only files are mounted read-only, no process of the script is left, and none sees ours. All else is as without it.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["contained", "works"]

_ROOT_KEEPS = ("CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_CHOWN", "CAP_SETUID", "CAP_SETGID", "CAP_KILL")
_PROBE_S = 10


def contained(command: Sequence[str], read_only: Sequence[str]) -> list[str]:
    """Return a command that runs another one with some paths mounted read-only, and with processes of its own."""
    words = ["bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--die-with-parent"]
    if os.geteuid() == 0:
        for each in _ROOT_KEEPS:
            words += ["--cap-add", each]
    for path in read_only:
        words += ["--ro-bind", path, path]
    return [*words, "--", *command]


@functools.cache
def works() -> bool:
    """Tell whether bubblewrap is here and may do this."""
    if shutil.which("bwrap") is None:
        return False
    command = contained(["true"], ["/usr"])
    try:
        return subprocess.run(command, capture_output=True, timeout=_PROBE_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
