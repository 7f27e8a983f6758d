"""Why bubblewrap cannot start here, by the facts of the host, and the one thing that mends it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from re_bench.runs.doctor.finding import Fix, fix_command
from re_bench.runs.doctor.host import CAPABILITIES

if TYPE_CHECKING:
    from re_bench.runs.doctor.host import Host

PROFILES = Path("/etc/apparmor.d")
_LOADED = Path("/sys/kernel/security/apparmor/profiles")
"""What the kernel has loaded, which root may read."""
_OURS = "bwrap-re-bench"
_SYSCTL_FILE = Path("/etc/sysctl.d/60-re-bench.conf")
_ENOUGH = 15000
_LIMIT_S = 10.0
_POD = "in the container's securityContext of the pod set: privileged: true"


class Obstacle(NamedTuple):
    """What keeps bubblewrap from starting."""

    found: str
    remedy: str
    fix: Fix | None = None
    """As of root; None where it is for somebody outside."""


def obstacle(host: Host, profiles: Path = PROFILES) -> Obstacle | None:
    """Return what keeps bubblewrap from starting; None if none of the known reasons applies.

    Args:
        host: the facts.
        profiles: where AppArmor's profiles lie.
    """
    options = missing_options(host)
    if host.container is not None and options:  # first, since a container has the settings of the machine around it
        remedy = _POD if host.container == "Kubernetes" else f"start the container with {' '.join(options)}"
        return Obstacle(f"a container ({host.container}) may make no namespaces by default", remedy)
    if not host.root and (setting := obstacle_of_users(host, profiles)):
        return setting
    if host.root and "SYS_ADMIN" not in host.capabilities:
        return Obstacle("root lacks CAP_SYS_ADMIN here", "start this with all capabilities")
    if not host.root and "No space left" in _unshare():
        found = "what runs around this process, another sandbox perhaps, allows no further user namespaces"
        return Obstacle(found, "start this outside of it")
    return None


def obstacle_of_users(host: Host, profiles: Path = PROFILES) -> Obstacle | None:
    """Return the setting of the system that keeps its ordinary users from starting bubblewrap, or None."""
    if host.user_namespaces == 0:
        return _setting("user.max_user_namespaces", 0, _ENOUGH)
    if host.unprivileged == 0:
        return _setting("kernel.unprivileged_userns_clone", 0, 1)
    if host.apparmor_restricts:
        return _apparmor(profiles, root=host.root)
    return None


def missing_options(host: Host) -> list[str]:
    """Return the options with which a container of Docker or Podman can hold bubblewrap, and has not been started."""
    docker = host.container != "Podman"
    lacking = [name for name in CAPABILITIES if name not in host.capabilities] if host.root else []
    options = [f"--cap-add={name}" for name in sorted(lacking, reverse=True)]
    options += ["--security-opt=seccomp=unconfined"] * (host.filtered and (docker or not host.root))
    options += [f"--security-opt={'systempaths=unconfined' if docker else 'unmask=ALL'}"] * host.masked_proc
    options += ["--security-opt=apparmor=unconfined"] * (host.apparmor is not None)
    return options


def _setting(name: str, value: int, wanted: int) -> Obstacle:
    fix = Fix((("sysctl", "-w", f"{name}={wanted}"),), _SYSCTL_FILE, f"{name} = {wanted}\n")
    return Obstacle(f"{name} is {value}: ordinary users may make no user namespaces", f"type: {fix_command()}", fix)


def _apparmor(profiles: Path, *, root: bool) -> Obstacle | None:
    """Return the restriction of Ubuntu 23.10 and later; None for root, where a profile for bwrap is in effect."""
    program = str(Path(shutil.which("bwrap") or "/usr/bin/bwrap").resolve())
    existing, file = profile_of(program, profiles), profiles / _OURS
    restricted = "AppArmor takes an ordinary user's namespaces their rights, and"
    if root and existing is not None and (existing != file or _is_loaded()):
        return None  # whether another's is enough shows when it is another user who starts bubblewrap
    if existing in {None, file}:
        fix = Fix((("apparmor_parser", "-r", str(file)),), file, _profile(program))
        which = "no profile lets bwrap" if existing is None else f"the profile {file} is not loaded"
        return Obstacle(f"{restricted} {which}", f"type: {fix_command()} (writes and loads {file})", fix)
    remedy = f"add the line 'userns,' to it if it has none, and type: sudo apparmor_parser -r {existing}"
    return Obstacle(f"{restricted} the profile {existing} for bwrap is not loaded, or not enough", remedy)


def _is_loaded() -> bool:
    with suppress(OSError):
        return f"{_OURS} (" in _LOADED.read_text(encoding="utf-8")
    return False


def profile_of(program: str, profiles: Path) -> Path | None:
    """Return the file of AppArmor's profiles that is for a program; two for one program would exclude each other."""
    attached = re.compile(rf"^\s*(?:profile\s+\S+\s+)?\"?{re.escape(program)}\"?\s.*\{{", re.MULTILINE)
    files = sorted(path for path in profiles.glob("*") if path.is_file())
    return next((path for path in files if attached.search(path.read_text(encoding="utf-8", errors="replace"))), None)


def _profile(program: str) -> str:
    return (
        "# Written by re-bench doctor --fix: bubblewrap may make user namespaces, and is confined in nothing else.\n"
        "abi <abi/4.0>,\n"
        "include <tunables/global>\n\n"
        f"profile {_OURS} {program} flags=(unconfined) {{\n  userns,\n}}\n"
    )


def _unshare() -> str:
    """Return why the kernel refuses a user namespace, in the C locale's words; nothing if it does not."""
    words = ("unshare", "--user", "true")
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=_LIMIT_S, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stderr
