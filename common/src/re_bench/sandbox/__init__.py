"""Run untrusted code.

:mod:`~re_bench.sandbox.spec` says what a sandbox is, :mod:`~re_bench.sandbox.process` runs a
program in one to its complete end, and :mod:`~re_bench.sandbox.untrusted` asks a submission's
process questions through the small protocol of :mod:`~re_bench.guest.ipc`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from re_bench.errors import UsageError
from re_bench.sandbox.bubblewrap import Bubblewrap
from re_bench.sandbox.container import Container
from re_bench.sandbox.landlock import Landlock
from re_bench.sandbox.other_user import OtherUser
from re_bench.sandbox.spec import BACKENDS
from re_bench.sandbox.unprotected import Unprotected

if TYPE_CHECKING:
    from re_bench.sandbox.spec import Backend

__all__ = ["BACKENDS", "open_backend"]


def open_backend(name: str | None = None) -> Backend:
    """Return the backend called ``name`` (default: ``$RE_BENCH_SANDBOX``, else bubblewrap), probed.

    Raises:
        UsageError: for an unknown name, or if the backend cannot isolate a program on this machine.
    """
    name = name or os.environ.get("RE_BENCH_SANDBOX") or BACKENDS[0]
    backends: dict[str, type[Backend]] = {
        "bubblewrap": Bubblewrap,
        "container": Container,
        "landlock": Landlock,
        "user": OtherUser,
        "none": Unprotected,
    }
    if name not in backends:
        raise UsageError(f"there is no sandbox backend {name!r}; choose one of: {', '.join(BACKENDS)}")
    backend = backends[name]()
    backend.probe()
    return backend
