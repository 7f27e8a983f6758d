"""A command in a real pseudo-terminal, and all that it writes to it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


def in_terminal(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, rows: int = 30, columns: int = 100
) -> tuple[int, str, str]:
    """Run a command whose stderr is a terminal of this size; return exit status, stdout, and what the terminal got."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    variables = {**os.environ, "TERM": "xterm-256color", **(environment or {})}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, env=variables, text=True
    ) as process:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
        assert process.stdout is not None
        output = process.stdout.read()
    os.close(ours)
    return process.returncode, output, shown.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # so Linux says that nobody has the other end any more
        return b""


def plain(shown: str) -> str:
    """Return what a terminal got without colours and movements of the cursor, all frames one below the other."""
    return _CONTROL.sub("", shown)
