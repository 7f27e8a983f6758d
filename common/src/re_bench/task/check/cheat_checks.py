"""Checks of the cheats: each has a folder and a table, and says how it must fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from re_bench.task.check.problem import Problem
from re_bench.task.check.toml_text import line_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from re_bench.task.check.problem import Note
    from re_bench.task.check.task_files import TaskFiles
    from re_bench.task.manifest import Cheat

FEWEST = 4
"""Cheats of a task: a forged score, a wrong answer, no answer, and a search for the truth are always possible."""


def cheats_have_folder_and_table(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield cheats without a folder, folders without a table, and that there are too few."""
    path, tables = files.directory / "task.toml", files.cheat_names
    if tables is None:
        return
    folders = {folder.name for folder in files.directory.glob("cheats/*") if any(folder.glob("*"))}
    for name in sorted(tables - folders):
        line = line_of(files.text(path), ("cheats", name))
        yield Problem(path, line, f"there are no files in cheats/{name}: write the submission, or take the table away")
    for name in sorted(folders - tables):
        yield Problem(files.directory / "cheats" / name, 1, f"task.toml has no table [cheats.{name}]: add one")
    if len(tables) < FEWEST:
        yield Problem(path, 1, f"{len(tables)} cheats, {FEWEST} at least: what else would game the scorer?")


def cheats_say_how_they_fail(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield refusals without a reason, and bases, profiles and programs that are not there."""
    if files.manifest is None:
        return
    path = files.directory / "task.toml"
    for name, cheat in files.manifest.cheats.items():
        for key, text in _faults(files, name, cheat):
            yield Problem(path, line_of(files.text(path), ("cheats", name, *key)), f"cheats.{name}: {text}")


def _faults(files: TaskFiles, name: str, cheat: Cheat) -> Iterator[tuple[tuple[str, ...], str]]:
    profiles = set(files.manifest.profiles) if files.manifest else set()
    for where, expected in ((), cheat), *((("on", profile), entry) for profile, entry in cheat.on.items()):
        if expected.expect == "invalid" and expected.reason is None:
            yield (*where, "expect"), "is refused for any reason: add reason = ..., which the message must match"
        if expected.base is not None and not (files.directory / expected.base).is_dir():
            yield (*where, "base"), f"there is no directory {expected.base}: name the honest base"
    for profile in sorted({*(cheat.profiles or ()), *cheat.on} - profiles):
        key = ("profiles",) if profile in (cheat.profiles or ()) else ("on", profile)
        yield key, f"there is no profile {profile}: take it away, or correct the name"
    if cheat.make is not None and len(cheat.make.command) > 1 and cheat.make.command[0] == "python":
        program = cheat.make.command[1]
        layers = ("starter", "baseline", f"cheats/{name}")
        if program.endswith(".py") and not any((files.directory / layer / program).is_file() for layer in layers):
            yield ("make",), f"there is no {program} in cheats/{name}: write it, or name another"
