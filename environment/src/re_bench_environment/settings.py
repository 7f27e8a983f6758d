"""What a server is told when it starts."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from re_bench.errors import UsageError
from re_bench.limits import Limits

__all__ = ["Settings", "default_state", "read_token"]

_MIB = 1 << 20
_HOUR_S = 3600.0
_LEAST_TOKEN = 16


@dataclass(frozen=True)
class Settings:
    """All settings of a server; ``re-bench serve --help`` says them in words."""

    state: Path
    """Where sessions and their attempt logs lie."""
    host: str = "127.0.0.1"
    port: int = 8080
    token: str | None = field(default=None, repr=False)
    """What clients must send as their API key; None if anybody may call who can connect."""
    profile: str = "auto"
    sandbox: str | None = None
    max_sessions: int = 64
    scorings: int = max(1, (os.cpu_count() or 2) // 2)
    """Scorings at a time; others wait."""
    hours: float = 8.0
    """How long a session may run commands."""
    command_s: float = 600.0
    """Time limit of a command that names none."""
    longest_command_s: float = 3600.0
    """The longest time limit that a command may name."""
    memory_mib: int = 8192
    """Memory of a session's programs together; a task's profile may raise it."""
    disk_mib: int = 16384
    """How much a session's workspace may grow."""
    processes: int = 512
    """Processes and threads of a session at a time."""
    model_dollars: float = 10.0
    """What a session may spend on the model of its task, scorings apart."""
    withhold_rewards: bool = False
    """Whether tasks that hide their score give the reward 0 until the episode ends."""
    body_bytes: int = 16 * _MIB
    """The longest request."""

    def limits(self, least: Limits) -> Limits:
        """Return the limits of a session whose task needs ``least``."""
        cores = os.cpu_count() or 1
        return Limits(
            wall_s=2 * self.hours * _HOUR_S,  # the deadline ends commands; this ends what is forgotten
            cpu_s=int(self.hours * _HOUR_S * cores),
            memory_mib=max(self.memory_mib, least.memory_mib),
            processes=max(self.processes, least.processes),
            file_mib=max(self.disk_mib, least.file_mib),
            disk_mib=self.disk_mib,
            open_files=max(4096, least.open_files),
            output_kib=32,
        )


def default_state() -> Path:
    """Return ``re-bench/serve`` in the user's directory for state.

    Raises:
        UsageError: if the user has no home.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    try:
        return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "re-bench" / "serve"
    except RuntimeError:
        raise UsageError("there is no home directory to keep sessions in; give one with --state DIR") from None


def read_token(path: Path) -> str:
    """Return the token in a file: its only line.

    Raises:
        UsageError: if the file cannot be read, others can read it, or it holds no token.
    """
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not plain ASCII"
        raise UsageError(f"{path}: the token cannot be read: {why}") from None
    if mode & 0o077:
        raise UsageError(f"{path}: others can read the token; type: chmod 600 {path}")
    if len(text) < _LEAST_TOKEN or not text.isprintable() or " " in text:
        raise UsageError(f"{path}: expected one line with a token of at least {_LEAST_TOKEN} characters without spaces")
    return text
