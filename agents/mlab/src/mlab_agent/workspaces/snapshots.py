"""Snapshots of a workspace by content: a file that did not change since the last one costs a comparison of its stamp.

A store holds objects by their hash: files, and directories as lists of names with the hashes of their contents. A
snapshot is the hash of a directory. An index beside the objects has the hash that belongs to each stamp.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import TYPE_CHECKING, Any

from mlab_agent import jsonl
from mlab_agent.workspaces.files import WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mlab_agent.workspaces.files import Files, FileStamp

_LONG_INDEX = 20_000  # lines


class SnapshotReader:
    """The snapshots of a store, which nothing here changes; another process may be writing it."""

    def __init__(self, directory: Path) -> None:
        """Open a store for reading."""
        self._objects = directory / "objects"

    def entries(self, snapshot: str) -> dict[str, list[Any]]:
        """Return what a snapshot has, by name: ``[kind, ...]`` as the store keeps it.

        Raises:
            WorkspaceError: if it is not in the store.
        """
        entries: dict[str, list[Any]] = {}
        self._collect(snapshot, "", entries)
        return entries

    def load(self, digest: str) -> bytes:
        """Return a stored content; errors as in :meth:`entries`."""
        try:
            return zlib.decompress((self._objects / digest).read_bytes())
        except (OSError, zlib.error):
            raise WorkspaceError(f"the snapshot {digest[:12]} is not in the store, or damaged") from None

    def _collect(self, tree: str, prefix: str, entries: dict[str, list[Any]]) -> None:
        for base, entry in json.loads(self.load(tree)).items():
            if base in {"", ".", ".."} or "/" in base:  # as no honest directory has
                raise WorkspaceError(f"the snapshot {tree[:12]} is damaged: it has a file called {base!r}")
            name = f"{prefix}{base}"
            entries[name] = entry
            if entry[0] == "tree":
                self._collect(entry[1], f"{name}/", entries)


class Snapshots(SnapshotReader):
    """A store of snapshots in a directory."""

    def __init__(self, directory: Path, limit: int) -> None:
        """Open a store, which is made if it is missing.

        Args:
            directory: not in the workspace.
            limit: bytes of the longest file that is stored; of longer ones only the size is noted.
        """
        super().__init__(directory)
        self._index_file = directory / "index.jsonl"
        self._limit = limit
        self._objects.mkdir(parents=True, exist_ok=True)
        self._index: dict[str, tuple[str, str]] = {}
        self._stored = {path.name for path in self._objects.iterdir()}
        self._load_index()

    def save(self, stamps: Mapping[str, FileStamp], read: Callable[[str], bytes]) -> str:
        """Store the files that belong to the stamps, and return the snapshot's name."""
        changed: list[tuple[str, str, str]] = []
        trees: dict[str, dict[str, Any]] = {"": {}}
        for name in sorted(stamps):
            stamp = stamps[name]
            if stamp.kind == "directory":
                trees[name] = {}
            elif (entry := self._entry(name, stamp, read, changed)) is not None:
                _parent_tree(trees, name)[_base(name)] = entry
        for name in sorted(trees, key=_depth, reverse=True):
            if name:
                _parent_tree(trees, name)[_base(name)] = ["tree", self._store_tree(trees[name])]
        if changed:
            jsonl.append(self._index_file, *changed)
        return self._store_tree(trees[""])

    def restore(self, snapshot: str, now: Mapping[str, FileStamp], files: Files) -> None:
        """Make a workspace what it was.

        Args:
            snapshot: what :meth:`save` returned.
            now: the present stamps.
            files: the workspace.

        Raises:
            WorkspaceError: if the snapshot is not in the store.
        """
        entries = self.entries(snapshot)
        for name in sorted(now, key=_depth, reverse=True):
            kind = "tree" if now[name].kind == "directory" else now[name].kind
            if name not in entries or entries[name][0] not in {kind, "long"}:
                files.delete(name)
        for name, entry in entries.items():
            stamp = now.get(name)
            if entry[0] == "tree":
                if stamp is None or stamp.kind != "directory":
                    files.make_directory(name)
            elif entry[0] == "link":
                if stamp is None or stamp.target != entry[1]:
                    files.link(name, entry[1])
            elif entry[0] == "file" and not (stamp and self._is_unchanged(name, stamp, entry)):
                files.write(name, self.load(entry[1]), entry[2])

    def _entry(
        self, name: str, stamp: FileStamp, read: Callable[[str], bytes], changed: list[tuple[str, str, str]]
    ) -> list[Any] | None:
        if stamp.kind == "link":
            return ["link", stamp.target]
        if stamp.kind != "file":
            return None
        if stamp.size > self._limit:
            return ["long", stamp.size]
        digest = self._digest(name, stamp)
        if digest is None:
            try:
                data = read(name)
            except WorkspaceError:  # removed meanwhile, or unreadable
                return ["long", stamp.size]
            digest = self._store(data)
            self._index[name] = (stamp.changed, digest)
            changed.append((name, stamp.changed, digest))
        return ["file", digest, stamp.mode]

    def _digest(self, name: str, stamp: FileStamp) -> str | None:
        changed, digest = self._index.get(name, ("", ""))
        return digest if changed == stamp.changed and digest in self._stored else None

    def _is_unchanged(self, name: str, stamp: FileStamp, entry: list[Any]) -> bool:
        return stamp.kind == "file" and stamp.mode == entry[2] and self._digest(name, stamp) == entry[1]

    def _store_tree(self, tree: Mapping[str, Any]) -> str:
        return self._store(json.dumps(tree, sort_keys=True).encode())

    def _store(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._stored:
            part = self._objects / f"{digest}.part"
            part.write_bytes(zlib.compress(data, 1))
            part.replace(self._objects / digest)
            self._stored.add(digest)
        return digest

    def _load_index(self) -> None:
        """Read the index; one that has become much longer than its contents is written anew."""
        if not self._index_file.exists():
            return
        lines = jsonl.read(self._index_file)
        self._index = {name: (changed, digest) for name, changed, digest in lines}
        if len(lines) > 2 * len(self._index) + _LONG_INDEX:
            part = self._index_file.with_suffix(".part")
            part.unlink(missing_ok=True)
            jsonl.append(part, *((name, *entry) for name, entry in self._index.items()))
            part.replace(self._index_file)


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _depth(name: str) -> int:
    return name.count("/")


def _parent_tree(trees: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the directory that a name is in; one that came or went during the scan is made."""
    return trees.setdefault(name.rpartition("/")[0], {})
