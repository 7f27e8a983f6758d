"""The settings of a server, its token, and where mounted data are."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.data.cache import state_directory
from re_bench.errors import UsageError
from re_bench.limits import Limits
from re_bench_server.network.policy import NetworkPolicy
from re_bench_server.options import ServeOptions

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from re_bench.task.chat_model import ChatModel

DATA_MOUNT = Path("/orwd_data")
"""Where hosts of environments mount large data, read-only."""

_HOUR_S = 3600.0
_MIN_TOKEN = 16
_MOUNTED = {"RE_BENCH_CACHE": "re-bench", "HF_HOME": "huggingface"}
"""Environment variables, and the directories of the mount that they are set to."""


@dataclass(frozen=True, kw_only=True)
class Settings(ServeOptions):
    """All settings of a server."""

    state: Path
    """Where sessions and their attempt logs are stored."""
    token: str | None = field(default=None, repr=False)
    """What clients must send as their API key; None if no key is needed."""
    chat_model: ChatModel | None = None
    """Asked instead of the tasks' own chat models, in the profiles that ask a real one."""
    command_s: float = 600.0
    """Default time limit of a command, in seconds."""
    longest_command_s: float = 3600.0
    """The longest time limit of a command, in seconds."""
    processes: int = 512
    """Processes and threads of a session at a time."""
    bash_reward: float | None = 0.0
    """The reward of commands, and of calls that failed or were interrupted by an internal error; None is null."""
    network: NetworkPolicy = field(default_factory=NetworkPolicy)
    """Which network the sandboxes of sessions have."""
    transcripts: bool = True
    """Whether commands and outputs of sessions are kept."""
    body_bytes: int = 16 << 20
    """The longest request body, in bytes."""

    def session_limits(self, needed: Limits) -> Limits:
        """Return the limits of a session whose task needs at least ``needed``."""
        cores = os.cpu_count() or 1
        return Limits(
            wall_s=2 * (self.hours + self.wait_hours) * _HOUR_S,  # commands end at the deadline; this ends what remains
            cpu_s=int((self.hours + self.wait_hours) * _HOUR_S * cores),
            memory_mib=max(self.memory_mib, needed.memory_mib),
            processes=max(self.processes, needed.processes),
            file_mib=max(self.disk_mib, needed.file_mib),
            disk_mib=self.disk_mib,
            open_files=max(4096, needed.open_files),
            output_kib=32,
        )


def use_mounted_data(environment: MutableMapping[str, str], mount: Path = DATA_MOUNT) -> list[Path]:
    """Set the variables for prepared data and the hub's cache, unless they are set; return the directories used."""
    used = []
    for name, directory in _MOUNTED.items():
        path = mount / directory
        if not environment.get(name) and path.is_dir():
            environment[name] = str(path)
            used.append(path)
    return used


def default_state() -> Path:
    """Return ``re-bench/serve`` in the user's directory for state.

    Raises:
        UsageError: if the user has no home.
    """
    try:
        return state_directory() / "serve"
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
        reason = error.strerror if isinstance(error, OSError) else "it is not plain ASCII"
        raise UsageError(f"{path}: the token cannot be read: {reason}") from None
    if mode & 0o077:
        raise UsageError(f"{path}: others can read the token; run: chmod 600 {path}")
    if len(text) < _MIN_TOKEN or not text.isprintable() or " " in text:
        raise UsageError(f"{path}: expected one line with a token of at least {_MIN_TOKEN} characters without spaces")
    return text


def check_address(settings: Settings, *, insecure: bool) -> None:
    """Do nothing, or refuse an address that others can reach, unless there is a token or that is ``insecure``.

    Raises:
        UsageError: if it is refused.
    """
    if settings.token is None and not insecure and not _is_loopback(settings.host):
        raise UsageError(
            f"{settings.host} can be reached by others, who could run programs in the sandboxes here: "
            "give a token with --token-file FILE, or type --insecure"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
