"""Writing manifests: a whole one, or new anchors into one that a person wrote."""

import contextlib
import os
import stat
import tempfile
import tomllib
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

import tomlkit
import tomlkit.items

from re_bench.manifest import Anchors, Manifest, ManifestError, parse, read_text


def dumps(manifest: Manifest) -> str:
    """Write a manifest as TOML; loading it gives an equal manifest."""
    return tomlkit.dumps(manifest.model_dump(exclude_none=True))


def write_anchors(path: Path, profile: str, anchors: Anchors) -> None:
    """Replace the anchors of one profile in a manifest, leaving every other byte as it is.

    The file changes at once or not at all, and keeps its permissions.

    Args:
        path: the `task.toml`.
        profile: a profile that it has.
        anchors: the new anchors.

    Raises:
        ManifestError: if the manifest is unusable, lacks the profile, or would be unusable with these anchors.
        OSError: if the file cannot be replaced.
    """
    old = read_text(path)
    if profile not in parse(old, path).profiles:
        raise ManifestError([f"{path}: profiles.{profile}: expected a table to hold the anchors, got nothing"])
    values = anchors.model_dump(exclude_none=True)
    new = _with_anchors(old, profile, values)
    wanted = tomllib.loads(old)
    wanted["profiles"][profile]["anchors"] = values
    parse(new, path)
    if tomllib.loads(new) != wanted:
        raise ManifestError([f"{path}: profiles.{profile}.anchors: expected a plain table that can be edited"])
    _replace(path, new.encode())


def _with_anchors(text: str, profile: str, values: Mapping[str, Any]) -> str:
    """Return the TOML text with a profile's anchors set."""
    document = tomlkit.parse(text)
    table: Any = document
    for key in ("profiles", profile):
        table = table[key]
    target = table.get("anchors", table)
    tail = _cut_tail(target)
    _merge(table, {"anchors": values})
    _innermost(table.get("anchors")).extend(tail)
    return tomlkit.dumps(document)


def _innermost(table: Any) -> list[Any]:
    """Return the parts of the table that stands last in the text of this one."""
    while isinstance(table, tomlkit.items.Table):
        body = table.value.body
        if not body or not isinstance(body[-1][1], tomlkit.items.Table):
            return body
        table = body[-1][1]
    return []


def _cut_tail(table: Any) -> list[Any]:
    """Remove and return what follows the last key's own comment lines: it belongs to the next table."""
    body = _innermost(table)
    start = len(body)
    while start and isinstance(body[start - 1][1], tomlkit.items.Whitespace | tomlkit.items.Comment):
        start -= 1
    while start < len(body) and not isinstance(body[start][1], tomlkit.items.Whitespace):
        start += 1
    tail = body[start:]
    del body[start:]
    return tail


def _merge(table: MutableMapping[str, Any], values: Mapping[str, Any]) -> None:
    """Give a table these values, touching only what differs."""
    for key, value in values.items():
        present = table.get(key)
        if isinstance(value, Mapping) and isinstance(present, MutableMapping):
            for stale in [name for name in present if name not in value]:
                del present[stale]
            _merge(present, value)
        elif present != value:
            table[key] = _item(table, key, value)


def _item(parent: Any, key: str, value: Any) -> Any:
    """Make a new entry: tables of their own for anchors and source where the parent can have them, else one line."""
    if not isinstance(value, Mapping):
        return value
    apart = key in ("anchors", "source") and not isinstance(parent, tomlkit.items.InlineTable)
    table: Any = tomlkit.table() if apart else tomlkit.inline_table()
    for name, entry in value.items():
        table[name] = _item(table, name, entry)
    return table


def _replace(path: Path, data: bytes) -> None:
    """Put a new version in a file's place at once; a symbolic link goes on pointing at it."""
    target = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            os.fchmod(handle, stat.S_IMODE(target.stat().st_mode))
            stream.write(data)
            stream.flush()
            os.fsync(handle)
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
