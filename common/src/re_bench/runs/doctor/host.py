"""What the kernel, and a container around us, allow: the facts that decide whether bubblewrap can start."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_BITS = {"NET_ADMIN": 12, "SYS_PTRACE": 19, "SYS_ADMIN": 21}
CAPABILITIES = tuple(_BITS)
"""What bubblewrap started by root needs, the second to count deleted files that are open."""
_CREATE_RULESET, _VERSION = 444, 1  # landlock_create_ruleset, LANDLOCK_CREATE_RULESET_VERSION
_SECCOMP_FILTER = "2"
_ROOT = Path("/")


@dataclass(frozen=True)
class Host:
    """Facts of this process and its kernel; None: the kernel has no such setting."""

    root: bool
    capabilities: frozenset[str]
    """Those of :data:`CAPABILITIES` that are in effect."""
    container: str | None
    """``Kubernetes``, ``Docker``, ``Podman``; None outside of all three, as far as their marks show."""
    filtered: bool
    """Whether a filter of system calls is in force."""
    masked_proc: bool
    """Whether parts of ``/proc`` are hidden, so that no sandbox may mount one of its own."""
    apparmor: str | None
    """The AppArmor profile that confines us, if one does."""
    apparmor_restricts: bool
    """``kernel.apparmor_restrict_unprivileged_userns``, as Ubuntu sets it since 23.10."""
    user_namespaces: int | None
    """``user.max_user_namespaces``."""
    unprivileged: int | None
    """``kernel.unprivileged_userns_clone``, which Debian's kernels had."""


def read_host(root: Path = _ROOT) -> Host:
    """Return the facts as the files below ``root`` tell them."""
    status = dict(line.split(":\t", 1) for line in _text(root / "proc/self/status").splitlines() if ":\t" in line)
    effective = int(status.get("CapEff", "0"), 16)
    sysctl = root / "proc/sys"
    return Host(
        root=os.geteuid() == 0,
        capabilities=frozenset(name for name, bit in _BITS.items() if effective >> bit & 1),
        container=_container(root),
        filtered=status.get("Seccomp", "").strip() == _SECCOMP_FILTER,
        masked_proc=_masked(_text(root / "proc/self/mountinfo")),
        apparmor=_profile(root),
        apparmor_restricts=_number(sysctl / "kernel/apparmor_restrict_unprivileged_userns") == 1,
        user_namespaces=_number(sysctl / "user/max_user_namespaces"),
        unprivileged=_number(sysctl / "kernel/unprivileged_userns_clone"),
    )


def landlock_abi() -> int:
    """Return the version of Landlock's interface that the kernel has; 0 if it has none or it is switched off."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))))


def _container(root: Path) -> str | None:
    marks = (
        ("Kubernetes", "run/secrets/kubernetes.io"),
        ("Kubernetes", "var/run/secrets/kubernetes.io"),
        ("Podman", "run/.containerenv"),
        ("Docker", ".dockerenv"),
    )
    if root == _ROOT and "KUBERNETES_SERVICE_HOST" in os.environ:  # also where a pod has no account
        return "Kubernetes"
    return next((name for name, mark in marks if (root / mark).exists()), None)


def _masked(mountinfo: str) -> bool:
    """Tell whether something other than the kernel's own file systems lies over a part of ``/proc``."""
    points = [line.split()[4] for line in mountinfo.splitlines()]
    return any(point.startswith("/proc/") and point != "/proc/sys/fs/binfmt_misc" for point in points)


def _profile(root: Path) -> str | None:
    """Return the profile without its mode, as ``docker-default`` of ``docker-default (enforce)``."""
    for name in ("attr/apparmor/current", "attr/current"):
        profile = _text(root / "proc/self" / name).strip("\0\n").partition(" (")[0]
        if profile:
            return None if profile == "unconfined" else profile
    return None


def _number(path: Path) -> int | None:
    with suppress(ValueError):
        return int(_text(path))
    return None


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""
