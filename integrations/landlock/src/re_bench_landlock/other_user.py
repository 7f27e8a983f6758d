"""Sandbox backend ``user``: run a child process as an unused user id, in a container that may not create namespaces.

The container and file permissions protect everything else, as in METR's Task Standard.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from re_bench.limits import Limits
from re_bench.sandbox.bubblewrap import drop_root, private_user
from re_bench.sandbox.process import run
from re_bench.sandbox.spec import Launch, SandboxSpec, SandboxUnavailableError
from re_bench.sandbox.unprotected import Unprotected

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_KILL_ALL = ("sh", "-c", "kill -9 -1")
"""Kills all processes that the user may signal in one step, so that none can start meanwhile."""
_GONE_S = 30.0
_READABLE, _SEARCHABLE = stat.S_IROTH, stat.S_IXOTH


class OtherUser(Unprotected):
    """Runs programs as an unused user id, which can read world-readable files and shares network and ``/tmp``."""

    sessions = False

    @property
    def name(self) -> str:
        """``user``."""
        return "user"

    def probe(self) -> None:
        """Run this interpreter as another user.

        Raises:
            SandboxUnavailableError: without root, a required program, or an interpreter that other users can read.
        """
        missing = [tool for tool in ("prlimit", "setpriv") if shutil.which(tool) is None]
        if os.geteuid() != 0 or missing:
            cause = f"{', '.join(missing)} not found; install util-linux" if missing else "requires root"
            raise SandboxUnavailableError(f"no sandbox: programs cannot run as another user here ({cause})")
        finished = run(self, [self.python, "-I", "-c", ""], SandboxSpec(limits=Limits(wall_s=30)))
        if finished.status != 0:
            reason = finished.stderr.strip() or finished.status
            raise SandboxUnavailableError(f"no sandbox: another user cannot run {self.python} here ({reason})")

    def launch(self, program: Sequence[str], spec: SandboxSpec) -> Launch:
        """Return how to start ``program`` as an unused user; the cleanup ends all processes of that user.

        Raises:
            SandboxUnavailableError: if a path would need a mount, or other users cannot read it, so that the
                submission would be blamed for a missing file.
        """
        for shown in (*spec.read_only.values(), *spec.writable.values()):
            need_readable(shown.resolve(), self.name)
        user = private_user() if spec.user is None else spec.user
        as_user = [*drop_root(user)[:-1], "--no-new-privs", "--"]
        bounded = ["prlimit", f"--nproc={spec.limits.processes}", "--", *program]
        plain = super().launch(bounded, spec)
        path = {"PATH": os.environ.get("PATH", os.defpath)}  # no other variable, which the program could read
        return replace(
            plain, command=[*as_user, *plain.command], cleanup=partial(_end_all, as_user), environment=path, user=user
        )


def need_readable(path: Path, backend: str) -> None:
    """Raise SandboxUnavailableError if other users cannot read a path."""
    entries = _SEARCHABLE | _READABLE if path.is_dir() else _READABLE
    needed = dict.fromkeys(path.parents, _SEARCHABLE) | {path: entries}
    for entry, bits in needed.items():
        if entry.stat().st_mode & bits != bits:
            raise SandboxUnavailableError(
                f"the backend {backend!r} cannot show {path}: other users may not read {entry}; "
                "use bubblewrap, or move it"
            )


def _end_all(as_user: Sequence[str]) -> None:
    """End all processes of a user."""
    subprocess.run([*as_user, *_KILL_ALL], check=False, timeout=_GONE_S, stderr=subprocess.DEVNULL)
