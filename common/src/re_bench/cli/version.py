"""What ``re-bench --version`` says: our distributions, torch and Python."""

from __future__ import annotations

import importlib.metadata
import platform

_OURS = ("re-bench-common", "re-bench-server", "re-bench-server", "re-bench-inspect", "mlab-agent")
_BESIDES = ("torch", "triton")


def versions() -> dict[str, str | None]:
    """Return the versions of our distributions, of tasks that are packages, of torch, Triton and Python; None: none."""
    tasks = {entry.dist.name for entry in importlib.metadata.entry_points(group="re_bench.tasks") if entry.dist}
    found: dict[str, str | None] = {name: _version(name) for name in (*_OURS, *sorted(tasks), *_BESIDES)}
    return {**found, "python": platform.python_version()}


def describe_versions() -> str:
    """Return the version of re-bench on a line, and below it those of all that belongs to it."""
    found = versions()
    return "\n".join(
        [
            f"re-bench {found['re-bench-common']}",
            *(f"{name} {value or 'not installed'}" for name, value in found.items()),
        ]
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
