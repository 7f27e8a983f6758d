"""Preparing rust_codecontests: the problems of a profile with all their tests, and what of them an agent finds."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from re_bench.data.files import sha256_of
from rust_codecontests import codecontests, dataset, pool, problem_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rust_codecontests.dataset import Problem


def prepare(profile: str, say: Callable[[str], None]) -> None:
    """Make the problems of the profile, unless they are there."""

    def make(directory: Path) -> dict[str, Any]:
        if profile in dataset.OWN:
            dataset.pinned_checksums(profile)  # refuses changed problems before their tests are made
        return write(profile, directory, say)

    dataset.entry(profile, dataset.SPLITS[profile]).prepare(make, say)


def lay_out(profile: str, target: Path) -> None:
    """Put the problems that are not held out into ``data`` of the workspace ``target``."""
    splits = dataset.SPLITS[profile][:-1]
    entry = dataset.entry(profile, splits)
    entry.open()
    (target / "data").mkdir(exist_ok=True)
    for split in splits:
        shutil.copyfile(entry.directory / f"{split}.jsonl", target / "data" / f"{split}.jsonl")


def write(profile: str, directory: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Write the files of a profile into ``directory``, and return their manifest, without checksums."""
    figures = {}
    for split in dataset.SPLITS[profile]:
        say(f"{split}: making problems and tests ..." if profile in dataset.OWN else f"{split}: fetching ...")
        with (directory / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            figures[split] = write_problems(problems_of(profile, split), file)
        say(f"{split}: {figures[split]['problems']} problems, {figures[split]['tests']} tests")
    return {"profile": profile, "key": dataset.key(profile), "figures": figures, "canary": pool.CANARY}


def write_problems(problems: Iterable[Problem], file: TextIO) -> dict[str, int]:
    """Write problems as lines of a file, and return how many they are, with how many tests."""
    counts = Counter(problems=0, tests=0)
    for problem in problems:
        file.write(dataset.to_json_line(problem))
        counts.update(problems=1, tests=len(problem.tests))
    return dict(counts)


def problems_of(profile: str, split: str) -> Iterable[Problem]:
    """Yield the problems of a split, as their source has them."""
    if profile in dataset.OWN:
        yield from problem_source.make_problems(pool.directories([split]))
    else:
        yield from map(dataset.from_record, codecontests.records(split, problems=codecontests.PROBLEMS[split]))


def pin(say: Callable[[str], None]) -> None:
    """Make the problems of our own anew and write their checksums into the repository."""
    pins = {}
    for profile in dataset.OWN:
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            key = write(profile, directory, say)["key"]
            files = {f"{split}.jsonl": sha256_of(directory / f"{split}.jsonl") for split in dataset.SPLITS[profile]}
            pins[profile] = {"key": key, "files": files}
    dataset.CHECKSUMS.write_text(json.dumps(pins, indent=2) + "\n", encoding="utf-8")
