"""The conformance suite as an ordinary user runs it: root of a test machine becomes one."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import re_bench

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDINARY = 64_999
"""A user id that is nobody's."""


@contextmanager
def what_the_suite_needs() -> Iterator[Path]:
    """Make a directory that everybody may read, with what the suite imports."""
    with tempfile.TemporaryDirectory(prefix="re-bench-ordinary-") as place:
        target = Path(place, "re_bench")
        target.mkdir()
        for name in ("__init__.py", "normalise.py", "errors.py", "processes.py", "limits.py"):
            shutil.copy(Path(re_bench.__file__).parent / name, target)
        for room in ("sandbox", "guest"):
            source = Path(re_bench.__file__).parent / room
            shutil.copytree(source, target / room, ignore=shutil.ignore_patterns("__pycache__"))
        binding = importlib.util.find_spec("pyseccomp")
        if binding is not None and binding.origin is not None:
            shutil.copy(binding.origin, place)
        subprocess.run(["chmod", "-R", "a+rX", place], check=True)
        yield Path(place)


def as_ordinary_user(place: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user who is nobody else, where the suite can be imported from ``place``."""
    drop = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"]
    drop += ["env"]  # setpriv itself still starts what only root may start
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent",
        "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1", **variables,
    }  # fmt: skip
    return subprocess.run(
        [*drop, *command], cwd="/", env=environment, capture_output=True, text=True, check=False, timeout=500
    )


def python_for_everybody(place: Path) -> str:
    """Return a Python, of this version or a later one, that an ordinary user can start."""
    candidates = [sys.executable, f"{sys.base_prefix}/bin/python3", "/usr/local/bin/python3", "/usr/bin/python3"]
    for candidate in candidates:
        with suppress(OSError):
            script = "import sys; sys.exit(sys.version_info < (3, 11))"
            if as_ordinary_user(place, candidate, "-c", script).returncode == 0:
                return candidate
    pytest.skip(f"an ordinary user can start none of {', '.join(candidates)} as Python 3.11 or later")
