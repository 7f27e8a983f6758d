"""Whether submissions can be isolated here."""

from __future__ import annotations

import os
import platform
import shutil
from typing import TYPE_CHECKING

from re_bench.errors import UsageError
from re_bench.runs.doctor import namespaces
from re_bench.runs.doctor.finding import Finding, Target, names
from re_bench.runs.doctor.host import Host, landlock_abi, read_host
from re_bench.runs.doctor.programs import install
from re_bench.sandbox import BACKENDS, open_backend
from re_bench.sandbox.spec import Backend, SandboxUnavailableError
from re_bench.scoring.score import refuse_backend

if TYPE_CHECKING:
    from collections.abc import Sequence


_PACKAGES = {"bwrap": "bubblewrap", "prlimit": "util-linux", "setpriv": "util-linux"}
_DEFAULT = BACKENDS[0]


def check_sandbox(name: str | None, targets: Sequence[Target]) -> Finding:
    """Find out whether the sandbox backend starts: the one named, else the environment's or the default."""
    try:
        backend = open_backend(name)
    except UsageError as error:
        chosen = name or os.environ.get("RE_BENCH_SANDBOX") or _DEFAULT
        return _broken_bubblewrap(error, names(targets)) if chosen == _DEFAULT else _broken(error, names(targets))
    if refused := _refused(backend, targets):
        reasons = "; ".join(refused.values())
        return Finding("sandbox", "problem", reasons, blocks=tuple(refused))
    if backend.name == "none":
        return Finding("sandbox", "note", "none: what is scored may do what you may, and every score says so")
    if "without" in backend.name:
        return Finding("sandbox", "note", f"{backend.name}", "type: sudo apt-get install libseccomp2")
    return Finding("sandbox", "ok", f"{backend.name} isolates a program")


def _refused(backend: Backend, targets: Sequence[Target]) -> dict[str, str]:
    """Return why the sandbox cannot hold some tasks, by their names."""
    refused = {}
    for task, _profile in targets:
        try:
            refuse_backend(task, backend)
        except SandboxUnavailableError as error:
            refused[task.name] = str(error)
    return refused


def _broken(error: UsageError, blocks: tuple[str, ...]) -> Finding:
    return Finding("sandbox", "problem", str(error), blocks=blocks)


def _broken_bubblewrap(error: UsageError, blocks: tuple[str, ...]) -> Finding:
    missing = [program for program in _PACKAGES if shutil.which(program) is None]
    if missing:
        packages = " ".join(dict.fromkeys(_PACKAGES[program] for program in missing))
        remedy = f"type: sudo apt-get install {packages} (or your system's equivalent)"
        return Finding("sandbox", "problem", f"{', '.join(missing)} not found", remedy, blocks, install(packages))
    reason = namespaces.obstacle(read_host())
    if reason is None:
        return _broken(error, blocks)
    found, remedy = f"bubblewrap cannot start: {reason.found}", f"{reason.remedy}{_instead()}"
    return Finding("sandbox", "problem", found, remedy, blocks, reason.fix)


def _instead() -> str:
    """Return which other backend there is for who can change nothing here."""
    if "landlock" in BACKENDS and landlock_abi() > 0:
        return "; where you can change nothing: --sandbox landlock, with the limits that docs/sandboxes.md names"
    return ""


def check_kernel(host: Host) -> Finding:
    """Say what the kernel allows; a problem of other users than us, or of an attack that a sandbox would not hold."""
    abi, root = landlock_abi(), host.root
    facts = [f"Linux {platform.release()}", f"Landlock ABI {abi}" if abi else "no Landlock"]
    facts += [f"in a container ({host.container})"] if host.container else []
    text = ", ".join(facts)
    others = namespaces.obstacle_of_users(host) if root else None
    if others is not None:
        return Finding(
            "kernel", "note", f"{text}; for other users than root: {others.found}", others.remedy, fix=others.fix
        )
    if root and "SYS_ADMIN" in host.capabilities and "SYS_PTRACE" not in host.capabilities:
        found = f"{text}; without CAP_SYS_PTRACE a submission can fill the disk with files that it has deleted"
        return Finding("kernel", "note", found, "start the container with --cap-add=SYS_PTRACE")
    return Finding("kernel", "ok", text)
