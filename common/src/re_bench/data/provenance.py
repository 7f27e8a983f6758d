"""Record the hardware and the software versions of a measurement."""

from __future__ import annotations

import importlib.metadata
import platform
from pathlib import Path

_RECORDED = ("re-bench-common", "numpy", "torch", "triton")


def hardware() -> str:
    """Return the processor's name and number of cores."""
    cores = len(_lines("/proc/cpuinfo", "processor"))
    model = next(iter(_lines("/proc/cpuinfo", "model name")), platform.machine())
    return f"{model}, {cores} cores"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that affect scores."""
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
