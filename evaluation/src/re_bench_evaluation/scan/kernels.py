"""The static screen of GPU kernels by kernelguard, in a process of its own.

Its rules see few of the ways to cheat a timer and match honest code, too: what it finds is a lead.
"""

from __future__ import annotations

import importlib.util
import json
import re
import resource
import subprocess
import sys
from dataclasses import dataclass

from re_bench.errors import UsageError

_KERNEL = re.compile(r"\btriton\.jit\b|\bimport triton\b|__global__|load_inline|cuda")
_TIME_LIMIT_S = 30
_MEMORY_BYTES = 2 << 30
_SEVERITIES = ("critical", "high")


@dataclass(frozen=True)
class Pattern:
    """A rule that matches."""

    name: str
    severity: str
    """``critical`` or ``high``; others are left out."""
    evidence: str


def screen_kernels(name: str, text: str) -> list[Pattern]:
    """Return the rules that match a source file; none for a file without kernels.

    Raises:
        UsageError: if kernelguard is not installed.
    """
    if not name.endswith((".py", ".cu", ".cpp")) or not _KERNEL.search(text):
        return []
    if importlib.util.find_spec("kernelguard") is None:
        raise UsageError("the check kernels needs kernelguard; run: pip install 're-bench-common[kernels]'")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-m", "kernelguard", "--api-mode"],
            input=text.encode("utf-8", "replace"),
            capture_output=True,
            timeout=_TIME_LIMIT_S,
            check=True,
            preexec_fn=_limit_memory,
        )
        matched = json.loads(done.stdout)["matched_patterns"]
        patterns = [Pattern(str(one["pattern"]), str(one["severity"]), str(one["evidence"])) for one in matched]
    except (subprocess.SubprocessError, ValueError, KeyError, TypeError, RecursionError) as error:
        return [Pattern("NOT_SCREENED", "high", f"kernelguard could not look at it: {type(error).__name__}")]
    return [pattern for pattern in patterns if pattern.severity in _SEVERITIES]


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
