"""Programs of ours that a server runs beside itself: the environment they get, and their end."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from contextlib import suppress

from re_bench.processes import tree

__all__ = ["end", "environment"]

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|^OPENAI_|^OPENREWARD_|^ANTHROPIC_", re.IGNORECASE)
_GRACE_S = 15.0


def environment(**more: str) -> dict[str, str]:
    """Return the server's environment without what may be secret, and with ``more``."""
    return {name: value for name, value in os.environ.items() if not _SECRET.search(name)} | more


async def end(process: asyncio.subprocess.Process) -> None:
    """End a program: first with time to clear up, then at once, with all that it runs."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _GRACE_S)
        except TimeoutError:
            for pid in list(tree(process.pid)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await process.wait()
