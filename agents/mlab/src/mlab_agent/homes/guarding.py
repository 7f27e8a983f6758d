"""Read-only files that a script may have changed: they are found by their stamps and put back from copies.

Copies of files up to a size are made when the home is opened. What is too long for a copy can only be reported.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from mlab_agent.homes import HomeError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mlab_agent.homes.workspace import Stamp, Workspace

__all__ = ["Guard"]


class Guard:
    """The read-only files of a workspace as they were in the beginning."""

    def __init__(self, home: Workspace, names: Iterable[str], copies: Path, file_limit: int, limit: int) -> None:
        """Look at the files and copy them.

        Args:
            home: the workspace.
            names: of its read-only files, resolved.
            copies: a directory of ours outside of it.
            file_limit: bytes of the longest file that is copied.
            limit: bytes of all copies together.
        """
        self._home = home
        self._stamps = home.stamps(names)
        self._copies = copies
        self._digests: dict[str, str] = {}
        for name, stamp in self._stamps.items():
            if stamp.kind == "file" and stamp.size <= min(file_limit, limit):
                self._copy(name)
                limit -= stamp.size

    @property
    def names(self) -> list[str]:
        """The files that are watched."""
        return list(self._stamps)

    def put_back(self) -> list[str]:
        """Undo what was done to the files; return a sentence about each one that was changed."""
        if not self._stamps:
            return []
        now = self._home.stamps(self._stamps)
        changed = [name for name, stamp in self._stamps.items() if now.get(name) != stamp]
        said = [note for name in changed if (note := self._mend(name, now.get(name)))]
        if changed:
            self._stamps |= self._home.stamps(changed)
        return said

    def _copy(self, name: str) -> None:
        data = self._home.fetch(name)
        digest = hashlib.sha256(data).hexdigest()
        self._copies.mkdir(parents=True, exist_ok=True)
        copy = self._copies / digest
        if not copy.exists():
            copy.write_bytes(data)
        self._digests[name] = digest

    def _mend(self, name: str, stamp: Stamp | None) -> str | None:
        digest = self._digests.get(name)
        if digest is None:
            how = "removed" if stamp is None else "changed, or touched"
            return f"The script {how} the read-only file {name}, of which there is no copy: put it back yourself."
        try:
            if stamp is not None and hashlib.sha256(self._home.fetch(name)).hexdigest() == digest:
                return None
        except HomeError:
            pass
        try:
            data = (self._copies / digest).read_bytes()
        except OSError:
            data = b""
        if hashlib.sha256(data).hexdigest() != digest:
            return f"The script changed the read-only file {name}, and our copy of it is damaged."
        try:
            self._clear_way(name)
            self._home.put(name, data, self._stamps[name].mode)
        except HomeError as error:
            return f"The script changed the read-only file {name}, which could not be put back: {error}"
        return f"The script changed the read-only file {name}; it was put back."

    def _clear_way(self, name: str) -> None:
        """Remove links and files that stand where a directory above a file was, and a directory in its own place."""
        parts = name.split("/")
        for count in range(1, len(parts) + 1):
            above = "/".join(parts[:count])
            stamp = self._home.stamps([above]).get(above)
            if stamp is not None and (stamp.kind == "directory") == (count == len(parts)):
                self._home.delete(above)
