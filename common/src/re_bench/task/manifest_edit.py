"""Writing manifests: a whole one, or new anchors into one that a person wrote."""

import contextlib
import os
import stat
import tempfile
import tomllib
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
import tomlkit.items

from re_bench.task.manifest import Anchors, Manifest, ManifestError, parse, read_text


def dumps(manifest: Manifest) -> str:
    """Write a manifest as TOML; loading it gives an equal manifest."""
    return tomlkit.dumps(manifest.model_dump(exclude_none=True))


def write_anchors(path: Path, profile: str, anchors: Anchors) -> None:
    """Replace the anchors of one profile in a manifest, leaving every other byte as it is.

    Where a profile measures its anchors in every run, the anchors of the device ``anchors.source.hardware`` are
    replaced, or added behind those of other devices.
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
    entry = parse(old, path).profiles.get(profile)
    if entry is None:
        raise ManifestError([f"{path}: profiles.{profile}: expected a table to hold the anchors, got nothing"])
    values = anchors.model_dump(exclude_none=True)
    key, write = ("devices", _with_device) if entry.in_run else ("anchors", _with_anchors)
    new = write(old, profile, values)
    parse(new, path)
    if tomllib.loads(new) != _wanted(old, profile, key, values):
        raise ManifestError([f"{path}: profiles.{profile}.{key}: expected a plain table that can be edited"])
    _replace(path, new.encode())


def _wanted(text: str, profile: str, key: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return what the new text must say."""
    data = tomllib.loads(text)
    table = data["profiles"][profile]
    if key == "anchors":
        table[key] = values
        return data
    devices = table.get(key, [])
    place = _place(devices, values)
    table[key] = [*devices[:place], values, *devices[place + 1 :]]
    return data


def _place(devices: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> int:
    """Return the position of the anchors of the same device, or the one behind all."""
    names = [entry["source"]["hardware"] for entry in devices]
    name = values["source"].get("hardware")
    return names.index(name) if name in names else len(names)


def _with_anchors(text: str, profile: str, values: Mapping[str, Any]) -> str:
    """Return the TOML text with a profile's anchors set."""
    document = tomlkit.parse(text)
    table = _profile(document, profile)
    tail = _cut_tail(table.get("anchors", table))
    _merge(table, {"anchors": values})
    _innermost(table.get("anchors")).extend(tail)
    return tomlkit.dumps(document)


def _with_device(text: str, profile: str, values: Mapping[str, Any]) -> str:
    """Return the TOML text with a profile's anchors of one device set."""
    document = tomlkit.parse(text)
    table = _profile(document, profile)
    devices = table.get("devices", [])
    place = _place(devices, values)
    tail = _cut_tail(_above(table, place))
    if place < len(devices):
        _merge(devices[place], values)
    else:
        devices = _extended(table, values)
    _innermost(devices[place]).extend(tail)
    return tomlkit.dumps(document)


def _above(table: Any, place: int) -> Any:
    """Return the table whose text the anchors at this place in the list of devices replace or follow."""
    if "devices" not in table:
        return table
    devices = table["devices"]
    return devices[min(place, len(devices) - 1)] if devices else None


def _extended(table: Any, values: Mapping[str, Any]) -> Any:
    """Return a profile's list of devices with one more: tables of their own unless the list stands on one line."""
    inline = isinstance(table, tomlkit.items.InlineTable)
    if "devices" not in table:
        table["devices"] = tomlkit.array() if inline else tomlkit.aot()
    devices = table["devices"]
    apart = isinstance(devices, tomlkit.items.AoT)
    entry: Any = tomlkit.table() if apart else tomlkit.inline_table()
    if apart:
        entry.trivia.indent = "\n"  # tomlkit puts an empty line only before tables that are in no list
    for name, value in values.items():
        entry[name] = _item(entry, name, value)
    devices.append(entry)
    return devices


def _profile(document: Any, profile: str) -> Any:
    return document["profiles"][profile]


def _innermost(table: Any) -> list[Any]:
    """Return the parts of the table that stands last in the text of this one."""
    while isinstance(table, tomlkit.items.Table):
        body = table.value.body
        last = body[-1][1] if body else None
        if isinstance(last, tomlkit.items.AoT) and last.body:
            last = last.body[-1]
        if not isinstance(last, tomlkit.items.Table):
            return body
        table = last
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
