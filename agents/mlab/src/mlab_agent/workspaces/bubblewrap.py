"""Run a script in bubblewrap, on machines that allow it.

Read-only files are mounted read-only; no directory above them, nor the workspace, can be renamed; no process of the
script outlives it, and none sees the agent's; devices but accelerators, the machine's terminals, and the sockets of
programs that carry out commands are not there. The rest of the machine's files is as without bubblewrap.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from mlab_agent.workspaces.privileges import without_privileges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PROBE_S = 10
_NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL")
_FOR_SETPRIV = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")  # which it gives up before the script starts
_ACCELERATORS = ("nvidia*", "dri", "kfd", "accel*", "infiniband", "dxg")
_CARRY_OUT_COMMANDS = (
    "/run/user",
    "/run/dbus",
    "/run/systemd/private",
    "/run/docker.sock",
    "/run/containerd",
    "/run/podman",
    "/run/screen",
)


def wrapped(
    command: Sequence[str],
    workspace: str,
    *,
    read_only: Sequence[str] = (),
    owner: tuple[int, int] | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[str]:
    """Return a command that runs another one in namespaces of its own.

    Args:
        command: the other one.
        workspace: a directory that it cannot rename; its absolute path without links, as of all paths here.
        read_only: files and directories that are mounted read-only.
        owner: user and group that root's scripts run as.
        environment: the agent's own, which may name sockets that are to be hidden.
    """
    arguments = ["bwrap", *_NAMESPACES, "--bind", "/", "/", "--dev", "/dev", "--bind-try", "/dev/shm", "/dev/shm"]  # noqa: S108
    for pattern in _ACCELERATORS:
        for device in sorted(map(str, Path("/dev").glob(pattern))):
            arguments += ["--dev-bind-try", device, device]
    if os.geteuid() == 0:
        for capability in _FOR_SETPRIV:
            arguments += ["--cap-add", capability]
    arguments += _mounts(workspace, read_only, _hidden(environment or {}))
    return [*arguments, "--proc", "/proc", "--", *without_privileges(command, owner)]


def _mounts(workspace: str, read_only: Sequence[str], hidden: Sequence[str]) -> Iterator[str]:
    """Mount what stays in its place, what stays as it is, and nothing where something is hidden; outer ones first."""
    kinds: dict[str, str] = {}
    for path in (workspace, *read_only):
        kinds |= {str(parent): "--bind" for parent in Path(path).parents if str(parent) not in {"/", "/dev"}}
    above = set(kinds)
    kinds |= {path: "hide" for path in hidden if path not in above}
    kinds |= dict.fromkeys(read_only, "--ro-bind") | {workspace: "--bind"}
    for path in sorted(kinds, key=lambda path: path.count("/")):
        if kinds[path] != "hide":
            yield from (kinds[path], path, path)
        elif Path(path).is_dir():
            yield from ("--tmpfs", path)
        else:
            yield from ("--ro-bind", "/dev/null", path)


def _hidden(environment: Mapping[str, str]) -> list[str]:
    """Return the directories and sockets by which a script could have its commands carried out elsewhere."""
    named = [environment.get(name, "").split(",")[0] for name in ("SSH_AUTH_SOCK", "TMUX")]
    paths = {*_CARRY_OUT_COMMANDS, f"/tmp/tmux-{os.getuid()}", *filter(os.path.isabs, named)}  # noqa: S108
    return sorted(path for path in map(os.path.realpath, paths) if os.path.exists(path))  # noqa: PTH110


@functools.cache
def is_available() -> bool:
    """Tell whether bubblewrap is installed and permitted."""
    if shutil.which("bwrap") is None:
        return False
    owner = (0, 0) if os.geteuid() == 0 else None
    if owner and not without_privileges([], owner):  # all of root's capabilities would be left
        return False
    command = wrapped(["true"], "/usr", read_only=["/usr/bin"], owner=owner)
    try:
        return subprocess.run(command, capture_output=True, timeout=_PROBE_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
