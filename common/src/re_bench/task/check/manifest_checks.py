"""Checks of ``task.toml`` and ``anchors.toml``: valid, in order, with anchors that are not too old."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

from re_bench.task.check.problem import Note, Problem, line_with
from re_bench.task.check.toml_text import keys_of, line_of, reordered
from re_bench.task.manifest_file import anchors_file, anchors_text
from re_bench.task.profile_names import PROFILES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from re_bench.task.check.task_files import TaskFiles
    from re_bench.task.manifest import Anchors, Profile

OLDEST_ANCHORS_DAYS = 365
"""Machines, drivers and packages change faster than that."""

ORDER = (
    *("id", "title", "description", "version", "direction", "aggregation", "show_score", "unit", "resolution"),
    *("submission", "programs", "shared_data", "staging", "reference", "model", "meter", "rebuild", "profiles"),
    *("published", "cheats"),
)
"""Of the manifest's keys; profiles are ordered by size, cheats by name."""

_DRAWN_BY = {"chosen": ("chosen_instance(",), "secret": ("secret_seed(", "interim_windows(")}
_TOML_LINE = re.compile(r"\(at line (\d+)|at offset")


def manifest_is_valid(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield what is wrong with the manifest, by the line of the key."""
    for text in files.manifest_problems:
        for path in (anchors_file(files.directory / "task.toml"), files.directory / "task.toml"):
            if text.startswith(f"{path}: "):
                rest = text.removeprefix(f"{path}: ")
                found = _TOML_LINE.search(rest)
                spelled = rest.partition(": ")[0]
                line = int(found[1] or 1) if found else line_of(files.text(path), keys_of(spelled))
                yield Problem(path, line, rest)


def manifest_is_in_order(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield that keys and tables do not stand in the order that all tasks have."""
    path = files.directory / "task.toml"
    text = files.text(path)
    if files.manifest is None or (wanted := in_order(text)) == text:
        return
    lines = zip(text.splitlines(), wanted.splitlines(), strict=False)
    first = next((number for number, (one, other) in enumerate(lines, 1) if one != other), 1)
    yield Problem(
        path,
        first,
        f"keys and tables are not in the usual order ({', '.join(ORDER[:4])}, ...): type re-bench check --fix",
        lambda: path.write_text(in_order(path.read_text(encoding="utf-8")), encoding="utf-8"),
    )


def in_order(text: str) -> str:
    """Return a manifest with its top keys and tables in order."""

    def rank(keys: tuple[str, ...]) -> tuple[object, ...]:
        first = ORDER.index(keys[0]) if keys[0] in ORDER else len(ORDER)
        if keys[0] == "profiles" and len(keys) > 1:
            size = keys[1].partition("-")[0]
            return (first, PROFILES.index(size) if size in PROFILES else len(PROFILES), keys[1])
        return (first, 0, keys[1] if keys[0] == "cheats" and len(keys) > 1 else "")

    return reordered(text, rank)


def programs_are_there(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield what the manifest names and the task does not have: programs, modules, functions."""
    manifest, path = files.manifest, files.directory / "task.toml"
    if manifest is None:
        return
    named: list[tuple[tuple[str, ...], str, Path]] = []
    if manifest.rebuild:
        named.append((("rebuild", "program"), manifest.rebuild.program, files.directory / manifest.rebuild.program))
    if manifest.meter:
        named.append((("meter", "module"), manifest.meter.module, _module(files, manifest.meter.module)))
    if manifest.model:
        module = manifest.model.stand_in.partition(":")[0]
        named.append((("model", "stand_in"), module, _module(files, module)))
    for keys, name, file in named:
        if not file.is_file():
            line = line_of(files.text(path), keys)
            yield Problem(path, line, f"{'.'.join(keys)}: there is no {name}: write it, or name another")


def _module(files: TaskFiles, name: str) -> Path:
    return files.directory / f"{name.replace('.', '/')}.py"


def instances_are_declared(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield that the manifest does not say what draws the truth, or says what nothing draws."""
    if files.manifest is None:
        return
    path = files.directory / "task.toml"
    sources = "".join(files.text(source) for source in files.own_sources)
    drawn_by = {source for source, calls in _DRAWN_BY.items() if any(call in sources for call in calls)}
    declared = {profile.instance for profile in files.manifest.profiles.values()} - {None}
    for source in sorted(drawn_by - declared):
        calls = " or ".join(_DRAWN_BY[source])
        text = f'the task calls {calls}), and no profile has instance = "{source}": add it to those that draw'
        yield Problem(path, line_with(files.text(path), "[profiles."), text)
    for source in sorted(filter(None, declared - drawn_by)):
        text = f'instance = "{source}", and nothing of the task calls {" or ".join(_DRAWN_BY[source])}): leave it out'
        yield Problem(path, line_with(files.text(path), f'instance = "{source}"'), text)


def anchors_are_measured(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield anchors that are old, in the wrong file, or written by hand, and note where there are none."""
    manifest = files.manifest
    if manifest is None:
        return
    path, measured = files.directory / "task.toml", anchors_file(files.directory / "task.toml")
    text = files.text(measured)
    if text and text != anchors_text(tomllib.loads(text)):
        yield Problem(measured, 1, "not as re-bench calibrate writes it, so somebody changed it: calibrate anew")
    in_manifest = tomllib.loads(files.text(path)).get("profiles", {})
    for name, profile in manifest.profiles.items():
        if not (profile.anchors or profile.devices or profile.models or profile.in_run):
            yield Note(path, f"profile {name} has no anchors yet: re-bench calibrate {files.name} --profile {name}")
        if in_manifest[name].get("anchors", {}).get("source", {}).get("kind") in ("measured", "modelled"):
            line = line_of(files.text(path), ("profiles", name, "anchors"))
            yield Problem(path, line, f"profile {name}: measured anchors belong into anchors.toml: let calibrate write")
        yield from _ages(files, name, profile)


def _ages(files: TaskFiles, name: str, profile: Profile) -> Iterator[Problem]:
    measured = anchors_file(files.directory / "task.toml")
    places: list[tuple[tuple[str | int, ...], Anchors]] = [(("anchors",), profile.anchors)] if profile.anchors else []
    places += [(("devices", index), entry) for index, entry in enumerate(profile.devices)]
    places += [(("models", index), entry) for index, entry in enumerate(profile.models)]
    for keys, anchors in places:
        if (date := anchors.source.date) is None:
            continue
        days, loc = (files.today - date).days, ("profiles", name, *keys, "source", "date")
        again = f"re-bench calibrate {files.name} --profile {name}"
        found = measured if files.text(measured) else files.directory / "task.toml"
        if days > OLDEST_ANCHORS_DAYS:
            text = f"profile {name}: the anchors are {days} days old ({date}): {again}"
            yield Problem(found, line_of(files.text(found), loc), text)
        elif days < -1:  # another time zone may have tomorrow
            text = f"profile {name}: the anchors are of a day to come ({date}): set the clock, and {again}"
            yield Problem(found, line_of(files.text(found), loc), text)
