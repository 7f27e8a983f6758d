"""Python, and the packages that tasks need; nothing of them is imported, so that it takes no time."""

from __future__ import annotations

import platform
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import UsageError
from re_bench.runs.doctor.finding import Finding, Target, names
from re_bench.task.requirements import requirements_of, with_dependencies

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.metadata import Distribution

_OLDEST = (3, 11)
_CUDA = re.compile(r"^cuda\b[^=]*= *'([\d.]+)'", re.MULTILINE)


def check_python() -> Finding:
    """Name the interpreter, which is ours."""
    text = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info >= _OLDEST:
        return Finding("python", "ok", text)
    return Finding(
        "python", "problem", text, f"make the environment with Python {'.'.join(map(str, _OLDEST))} or newer"
    )


def check_packages(targets: Sequence[Target]) -> list[Finding]:
    """Find out whether all packages of tasks are installed, and name torch and Triton where a task needs them."""
    findings: list[Finding] = []
    present: dict[str, Distribution] = {}
    users: list[Target] = []
    for target in targets:
        try:
            found = with_dependencies(requirements_of(target.task))
        except UsageError as error:
            remedy = f"type: pip install -c constraints.txt -e common -e server -e tasks/{target.task.name}"
            findings.append(Finding("packages", "problem", str(error), remedy, names([target])))
            continue
        present |= found
        users += [target] * ("torch" in found)
    if "torch" in present:
        findings.append(_torch(present["torch"].version, users))
    if "triton" in present:
        findings.append(Finding("triton", "ok", present["triton"].version))
    return findings


def _torch(version: str, users: Sequence[Target]) -> Finding:
    cuda = cuda_of_torch()
    text = f"{version}, {f'for CUDA {cuda}' if cuda else 'for the CPU alone'}"
    needing = [target for target in users if target.task.profile(target.profile).device == "cuda"]
    if cuda or not needing:
        return Finding("torch", "ok", text)
    remedy = "unset PIP_EXTRA_INDEX_URL and PIP_FIND_LINKS, remove .nox/shared, and run the nox session again"
    return Finding("torch", "problem", text, remedy, names(needing))


def cuda_of_torch() -> str | None:
    """Return the version of CUDA that the installed torch was built for; None for the CPU build."""
    spec = find_spec("torch")
    file = Path(spec.origin).with_name("version.py") if spec and spec.origin else None
    if file is None or not file.is_file():
        return None
    found = _CUDA.search(file.read_text(encoding="utf-8"))
    return found[1] if found else None
