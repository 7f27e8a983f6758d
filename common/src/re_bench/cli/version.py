"""What ``re-bench --version`` prints: the installed distributions of re-bench, torch, Triton and Python."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, distributions, entry_points, version

_CORE = "re-bench-common"
_OTHERS = ("torch", "triton")


def versions() -> dict[str, str | None]:
    """Return the versions of re-bench's distributions, of installed tasks and agents, and of what they run on.

    What is not installed has None.
    """
    entries = [*entry_points(group="re_bench.tasks"), *entry_points(group="re_bench.agents")]
    added = {entry.dist.name for entry in entries if entry.dist}
    own = {distribution.name for distribution in distributions() if distribution.name.startswith("re-bench-")}
    names = [_CORE, *sorted((own | added) - {_CORE}), *_OTHERS]
    return {**{name: _version(name) for name in names}, "python": platform.python_version()}


def describe_versions() -> str:
    """Return the version of re-bench on a line, and below it the others."""
    found = versions()
    lines = [f"{name} {value or 'not installed'}" for name, value in found.items()]
    return "\n".join([f"re-bench {found[_CORE]}", *lines])


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
