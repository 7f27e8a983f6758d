"""On what a figure was measured: the processor, and the versions of Python and of the packages that matter."""

from __future__ import annotations

import importlib.metadata
import platform
from pathlib import Path

_RECORDED = ("re-bench-common", "numpy", "torch", "triton")


def hardware() -> str:
    """Return the processor's name and the number of its cores, as Linux tells them."""
    cores = len(_lines("/proc/cpuinfo", "processor"))
    model = next(iter(_lines("/proc/cpuinfo", "model name")), platform.machine())
    return f"{model}, {cores} cores"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that scores depend on."""
    packages = {"python": platform.python_version()}
    for name in _RECORDED:
        try:
            packages[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return packages


def _lines(path: str, key: str) -> list[str]:
    pairs = (line.partition(":") for line in Path(path).read_text(errors="replace").splitlines())
    return [value.strip() for name, _colon, value in pairs if name.strip() == key]
