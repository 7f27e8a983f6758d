"""What every backend must prevent: attacks that are really tried inside, and judged from outside.

The idea is that of the self-check of inspect_ai's sandboxes. A check is a function of a backend
and a directory of its own; it raises :class:`NotHeldError` and says what got through. Run them by
``re-bench sandbox``, or by ``python -m re_bench.sandbox.conformance``, which needs nothing but
the standard library. Every attack stops by itself where nothing stops it.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError
from re_bench.sandbox.conformance import files, memory, network, processes, programs, resources, system
from re_bench.sandbox.conformance.attack import Check, NotHeldError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from re_bench.sandbox.spec import Backend

__all__ = ["CHECKS", "NotHeldError", "Outcome", "check_all", "run_check"]

_AREAS = (files, processes, programs, memory, resources, network, system)
CHECKS: dict[str, Check] = {name: check for area in _AREAS for name, check in area.CHECKS.items()}
"""Every check by its name."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one check."""

    name: str
    held: bool
    why: str
    """What got through, or the empty string."""
    seconds: float


def check_all(backend: Backend) -> list[Outcome]:
    """Try everything on ``backend``, one check after the other."""
    return list(outcomes(backend, CHECKS))


def outcomes(backend: Backend, names: Iterable[str]) -> Iterator[Outcome]:
    """Try the named checks and yield each outcome as its check ends."""
    for name in names:
        yield run_check(backend, name)


def run_check(backend: Backend, name: str) -> Outcome:
    """Run the check called ``name`` in a temporary directory; whatever it raises becomes its outcome."""
    started = time.monotonic()
    reason = ""
    with tempfile.TemporaryDirectory(prefix="re-bench-check-") as scratch:
        Path(scratch).chmod(0o755)  # a sandbox may run as another user
        try:
            CHECKS[name](backend, Path(scratch))
        except NotHeldError as error:
            reason = str(error)
        except (ReBenchError, OSError, ValueError) as error:
            reason = f"the check could not be made: {type(error).__name__}: {error}"
    return Outcome(name, not reason, reason, time.monotonic() - started)
