"""Snapshots of a workspace by content: what did not change since the one before costs nothing but a look at its stamp.

A store holds objects by their hash: files, and directories as lists of names with the hashes of what they name. A
snapshot is the hash of a directory. Which stamp belongs to which hash is in an index beside, to which lines are added.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import TYPE_CHECKING, Any, Protocol

from mlab_agent.homes import HomeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mlab_agent.homes.workspace import Stamp

__all__ = ["Snapshots", "Target"]

_LONG_INDEX = 20_000


class Target(Protocol):
    """What a snapshot is put back into."""

    def put(self, name: str, data: bytes, mode: int | None = None) -> None:
        """Write a file."""

    def link(self, name: str, target: str) -> None:
        """Make a link."""

    def delete(self, name: str) -> None:
        """Remove a file, a link, or an empty directory."""

    def make_directory(self, name: str) -> None:
        """Make a directory."""


class Snapshots:
    """A store of snapshots in a directory."""

    def __init__(self, directory: Path, limit: int) -> None:
        """Open a store, which is made if it is missing.

        Args:
            directory: not in the workspace.
            limit: bytes of the longest file that is kept; of longer ones there is a note.
        """
        self._objects = directory / "objects"
        self._index_file = directory / "index.jsonl"
        self._limit = limit
        self._objects.mkdir(parents=True, exist_ok=True)
        self._index: dict[str, tuple[str, str]] = {}
        self._known = {path.name for path in self._objects.iterdir()}
        self._load_index()

    def save(self, stamps: Mapping[str, Stamp], fetch: Callable[[str], bytes]) -> str:
        """Keep what the stamps are of, and return the snapshot's name."""
        fresh: list[str] = []
        trees: dict[str, dict[str, Any]] = {"": {}}
        for name in sorted(stamps):
            stamp = stamps[name]
            if stamp.kind == "directory":
                trees[name] = {}
            elif (entry := self._entry(name, stamp, fetch, fresh)) is not None:
                _tree_of(trees, name)[_base(name)] = entry
        for name in sorted(trees, key=lambda each: each.count("/"), reverse=True):
            if name:
                _tree_of(trees, name)[_base(name)] = ["tree", self._keep_tree(trees[name])]
        if fresh:
            with self._index_file.open("a", encoding="utf-8") as index:
                index.write("".join(fresh))
        return self._keep_tree(trees[""])

    def restore(self, snapshot: str, now: Mapping[str, Stamp], target: Target) -> None:
        """Make a workspace what it was.

        Args:
            snapshot: what :meth:`save` returned.
            now: the stamps of what is there.
            target: the workspace.

        Raises:
            HomeError: if the snapshot is not in the store.
        """
        wanted: dict[str, list[Any]] = {}
        self._collect(snapshot, "", wanted)
        for name in sorted(now, key=lambda each: each.count("/"), reverse=True):
            kind = "tree" if now[name].kind == "directory" else now[name].kind
            if name not in wanted or wanted[name][0] not in {kind, "long"}:
                target.delete(name)
        for name, entry in wanted.items():
            stamp = now.get(name)
            if entry[0] == "tree":
                if stamp is None or stamp.kind != "directory":
                    target.make_directory(name)
            elif entry[0] == "link":
                if stamp is None or stamp.target != entry[1]:
                    target.link(name, entry[1])
            elif entry[0] == "file" and not (stamp and self._is(name, stamp, entry)):
                target.put(name, self._read(entry[1]), entry[2])

    def left_out(self, snapshot: str) -> list[str]:
        """Return the files that were too long for a snapshot."""
        wanted: dict[str, list[Any]] = {}
        self._collect(snapshot, "", wanted)
        return [name for name, entry in wanted.items() if entry[0] == "long"]

    def _entry(self, name: str, stamp: Stamp, fetch: Callable[[str], bytes], fresh: list[str]) -> list[Any] | None:
        if stamp.kind == "link":
            return ["link", stamp.target]
        if stamp.kind != "file":
            return None
        if stamp.size > self._limit:
            return ["long", stamp.size]
        digest = self._digest(name, stamp)
        if digest is None:
            try:
                data = fetch(name)
            except HomeError:  # it went meanwhile, or nobody may read it
                return ["long", stamp.size]
            digest = self._keep(data)
            self._index[name] = (stamp.changed, digest)
            fresh.append(json.dumps([name, stamp.changed, digest]) + "\n")
        return ["file", digest, stamp.mode]

    def _digest(self, name: str, stamp: Stamp) -> str | None:
        changed, digest = self._index.get(name, ("", ""))
        return digest if changed == stamp.changed and digest in self._known else None

    def _is(self, name: str, stamp: Stamp, entry: list[Any]) -> bool:
        return stamp.kind == "file" and stamp.mode == entry[2] and self._digest(name, stamp) == entry[1]

    def _collect(self, tree: str, above: str, wanted: dict[str, list[Any]]) -> None:
        for base, entry in json.loads(self._read(tree)).items():
            name = f"{above}{base}"
            wanted[name] = entry
            if entry[0] == "tree":
                self._collect(entry[1], f"{name}/", wanted)

    def _keep_tree(self, tree: Mapping[str, Any]) -> str:
        return self._keep(json.dumps(tree, sort_keys=True).encode())

    def _keep(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._known:
            part = self._objects / f"{digest}.part"
            part.write_bytes(zlib.compress(data, 1))
            part.replace(self._objects / digest)
            self._known.add(digest)
        return digest

    def _read(self, digest: str) -> bytes:
        try:
            return zlib.decompress((self._objects / digest).read_bytes())
        except (OSError, zlib.error):
            raise HomeError(f"the snapshot {digest[:12]} is not in the store, or damaged") from None

    def _load_index(self) -> None:
        """Read the index; a last line that a killed process did not end is not there."""
        if not self._index_file.exists():
            return
        lines = self._index_file.read_bytes().split(b"\n")
        for line in lines[:-1]:
            name, changed, digest = json.loads(line)
            self._index[name] = (changed, digest)
        if lines[-1] or len(lines) > 2 * len(self._index) + _LONG_INDEX:
            part = self._index_file.with_suffix(".part")
            texts = [json.dumps([name, *entry]) + "\n" for name, entry in self._index.items()]
            part.write_text("".join(texts), encoding="utf-8")
            part.replace(self._index_file)


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _tree_of(trees: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the directory that a name is in; one that came or went during the look is made."""
    return trees.setdefault(name.rpartition("/")[0], {})
