"""Run a script in bubblewrap, on machines that allow it.

Read-only files are mounted read-only, no process of the script outlives it, and none sees the agent's. Everything else
is as without bubblewrap.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_KEPT_CAPABILITIES = ("CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_CHOWN", "CAP_SETUID", "CAP_SETGID", "CAP_KILL")
_PROBE_S = 10


def wrapped(command: Sequence[str], read_only: Sequence[str]) -> list[str]:
    """Return a command that runs another one in its own process namespace, with some paths mounted read-only."""
    arguments = ["bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--die-with-parent"]
    if os.geteuid() == 0:
        for capability in _KEPT_CAPABILITIES:
            arguments += ["--cap-add", capability]
    for path in read_only:
        arguments += ["--ro-bind", path, path]
    return [*arguments, "--", *command]


@functools.cache
def is_available() -> bool:
    """Tell whether bubblewrap is installed and permitted."""
    if shutil.which("bwrap") is None:
        return False
    command = wrapped(["true"], ["/usr"])
    try:
        return subprocess.run(command, capture_output=True, timeout=_PROBE_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
