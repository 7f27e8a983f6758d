"""The output of ``re-bench --version``: versions of re-bench's distributions, torch, Triton and Python."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, distributions, entry_points, version

_CORE = "re-bench-common"
_OTHERS = ("torch", "triton")


def versions() -> dict[str, str | None]:
    """Return the versions of re-bench, of installed tasks and agents, and of torch, Triton and Python.

    The version of a distribution that is not installed is None.
    """
    entries = [*entry_points(group="re_bench.tasks"), *entry_points(group="re_bench.agents")]
    added = {entry.dist.name for entry in entries if entry.dist}
    own = {distribution.name for distribution in distributions() if distribution.name.startswith("re-bench-")}
    names = [_CORE, *sorted((own | added) - {_CORE}), *_OTHERS]
    return {**{name: _version(name) for name in names}, "python": platform.python_version()}


def describe_versions() -> str:
    """Return the versions as text: a line for re-bench, followed by a line for each distribution."""
    found = versions()
    lines = [f"{name} {value or 'not installed'}" for name, value in found.items()]
    return "\n".join([f"re-bench {found[_CORE]}", *lines])


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
