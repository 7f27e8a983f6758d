"""Run a script in bubblewrap, on machines that allow it.

Read-only files are mounted read-only; no directory above them, nor the workspace, can be renamed; no process of the
script outlives it, and none sees the agent's; devices but accelerators, the machine's terminals, and the sockets of
programs that carry out commands are not there. The rest of the machine's files is as without bubblewrap.
"""

from __future__ import annotations

import functools
import os
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from mlab_agent.workspaces.privileges import can_drop_capabilities, system_program, without_privileges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PROBE_S = 60
_NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL")
_FOR_SETPRIV = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")  # which it gives up before the script starts
_SYSTEM = ("/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/boot", "/sys", "/var/spool")
"""What root owns and programs with all capabilities heed, the next bwrap among them."""
_KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus")
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
    arguments = [system_program("bwrap") or "bwrap", *_NAMESPACES, "--bind", "/", "/"]
    arguments += ["--dev", "/dev", "--bind-try", "/dev/shm", "/dev/shm"]  # noqa: S108
    for pattern in _ACCELERATORS:
        for device in sorted(map(str, Path("/dev").glob(pattern))):
            arguments += ["--dev-bind-try", device, device]
    if os.geteuid() == 0:
        for capability in _FOR_SETPRIV:
            arguments += ["--cap-add", capability]
    arguments += _mounts(workspace, read_only, _hidden(environment or {}), _system(owner))
    arguments += ["--proc", "/proc"]
    if owner and owner[0] == 0:  # a program that is to get core dumps would run with all capabilities
        arguments += [part for path in _KERNEL for part in ("--ro-bind-try", path, path)]
    return [*arguments, "--", *without_privileges(command, owner)]


def _system(owner: tuple[int, int] | None) -> set[str]:
    """Return the directories of the system that a user could change without capabilities, where that is root."""
    return {os.path.realpath(path) for path in _SYSTEM if os.path.isdir(path)} if owner and owner[0] == 0 else set()  # noqa: PTH112


def _mounts(workspace: str, read_only: Sequence[str], hidden: Sequence[str], system: set[str]) -> Iterator[str]:
    """Mount what stays in its place, what stays as it is, and nothing where something is hidden; outer ones first."""
    kinds: dict[str, str] = {}
    for path in (workspace, *read_only):
        parents = [parent for parent in Path(path).parents if system.isdisjoint(map(str, [parent, *parent.parents]))]
        kinds |= {str(parent): "--bind" for parent in parents if str(parent) not in {"/", "/dev"}}
    above = set(kinds)
    kinds |= {path: "hide" for path in hidden if path not in above}
    kinds |= dict.fromkeys([*system, *read_only], "--ro-bind") | {workspace: "--bind"}
    for path in sorted(kinds, key=lambda path: len(Path(path).parts)):
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
    return sorted(os.path.realpath(path) for path in paths if _is_there(path))


def _is_there(path: str) -> bool:
    """Tell whether there is something other than a link, which a script may have put there, or a link to a socket."""
    return (not os.path.islink(path) and os.path.exists(path)) or _is_socket(path)  # noqa: PTH110, PTH114


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)  # noqa: PTH116
    except OSError:
        return False


@functools.cache
def is_available() -> bool:
    """Tell whether bubblewrap is installed and permitted."""
    if system_program("bwrap") is None:
        return False
    owner = (0, 0) if os.geteuid() == 0 else None
    if owner and not can_drop_capabilities():
        return False
    command = wrapped(["true"], "/usr", read_only=["/usr/bin"], owner=owner)
    try:
        return subprocess.run(command, capture_output=True, timeout=_PROBE_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
