"""The backend for a container that may make no namespaces: a child process of a user that owns nothing.

What protects is the container around it, and the permissions of files. METR's Task Standard keeps its secrets so.
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
"""Ends all that this user may signal, in one step, so that nothing starts meanwhile; only who says it goes on."""
_GONE_S = 30.0
_READABLE, _SEARCHABLE = stat.S_IROTH, stat.S_IXOTH


class OtherUser(Unprotected):
    """A process of a user id that nobody else has: it reads what all users may, and shares network and ``/tmp``."""

    sessions = False

    @property
    def name(self) -> str:
        """``user``."""
        return "user"

    def probe(self) -> None:
        """Run this interpreter as another user.

        Raises:
            SandboxUnavailableError: if we are not root, a program is missing, or the interpreter cannot be read.
        """
        missing = [tool for tool in ("prlimit", "setpriv") if shutil.which(tool) is None]
        if os.geteuid() != 0 or missing:
            what = f"{', '.join(missing)} not found; install util-linux" if missing else "it takes root"
            raise SandboxUnavailableError(f"no sandbox: programs cannot run as another user here ({what})")
        finished = run(self, [self.python, "-I", "-c", ""], SandboxSpec(limits=Limits(wall_s=30)))
        if finished.status != 0:
            reason = finished.stderr.strip() or finished.status
            raise SandboxUnavailableError(f"no sandbox: another user cannot run {self.python} here ({reason})")

    def launch(self, program: Sequence[str], spec: SandboxSpec) -> Launch:
        """Return how to start ``program`` as a new user, with its limits; its end takes all processes of that user.

        Raises:
            SandboxUnavailableError: if a path should appear elsewhere than where it is, which takes mounts, or the user
                cannot read it: without a mount it would seem to be missing, by the submission's fault.
        """
        for shown in (*spec.read_only.values(), *spec.writable.values()):
            need_readable(shown.resolve(), self.name)
        user = private_user() if spec.user is None else spec.user
        as_user = [*drop_root(user)[:-1], "--no-new-privs", "--"]
        bounded = ["prlimit", f"--nproc={spec.limits.processes}", "--", *program]
        plain = super().launch(bounded, spec)
        path = {"PATH": os.environ.get("PATH", os.defpath)}  # and nothing that a program could read of ours
        return replace(
            plain, command=[*as_user, *plain.command], cleanup=partial(_end_all, as_user), environment=path, user=user
        )


def need_readable(path: Path, backend: str) -> None:
    """Do nothing, or refuse a path that other users cannot read.

    Raises:
        SandboxUnavailableError: if they cannot; the text names what is closed.
    """
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
