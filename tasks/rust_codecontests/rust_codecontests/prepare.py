"""Preparing rust_codecontests: the problems of a profile with all their tests, and what of them an agent finds."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from re_bench.data.cache import file_lock, new_directory
from re_bench.data.files import sha256_of
from re_bench.errors import ReBenchError
from rust_codecontests import codecontests, dataset, pool, problem_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rust_codecontests.dataset import Problem

CHECKSUMS = Path(__file__).parent / "checksums.json"
HELD_OUT = "test"
PIN = "after a change of problems run: python tasks/rust_codecontests/tools/check_problems.py --pin"


def prepare(profile: str, say: Callable[[str], None]) -> None:
    """Make the problems of the profile, unless they are there."""
    target = dataset.prepared_directory(profile)
    with file_lock(target.with_name(f".{target.name}.lock")):
        if target.is_dir():
            try:
                dataset.check_prepared(target, profile, dataset.SPLITS[profile])
            except ReBenchError as error:
                say(f"the problems are made again, because of this: {error}")
            else:
                return
        pins = read_pins() if profile == "cpu" else {}
        with new_directory(target) as directory:
            write(profile, directory, say)
            check_pins(directory, pins)


def lay_out(profile: str, target: Path) -> None:
    """Put the problems that are not held out into ``data`` of the workspace ``target``."""
    directory = dataset.prepared_directory(profile)
    splits = [split for split in dataset.SPLITS[profile] if split != HELD_OUT]
    dataset.check_prepared(directory, profile, splits)
    (target / "data").mkdir(exist_ok=True)
    for split in splits:
        shutil.copyfile(directory / f"{split}.jsonl", target / "data" / f"{split}.jsonl")


def write(profile: str, directory: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Write the files of a profile and their manifest into ``directory``, and return the manifest."""
    figures = {}
    for split in dataset.SPLITS[profile]:
        say(f"{split}: making problems and tests ..." if profile == "cpu" else f"{split}: fetching ...")
        with (directory / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            figures[split] = write_problems(problems_of(profile, split), file)
        say(f"{split}: {figures[split]['problems']} problems, {figures[split]['tests']} tests")
    files = {f"{split}.jsonl": sha256_of(directory / f"{split}.jsonl") for split in figures}
    manifest = {"profile": profile, "key": dataset.key(profile), "files": files, "figures": figures}
    text = json.dumps({**manifest, "canary": pool.CANARY}, indent=2) + "\n"
    (directory / dataset.MANIFEST).write_text(text, encoding="utf-8")
    return manifest


def write_problems(problems: Iterable[Problem], file: TextIO) -> dict[str, int]:
    """Write problems as lines of a file, and return how many they are, with how many tests."""
    counts = Counter(problems=0, tests=0)
    for problem in problems:
        file.write(dataset.to_json_line(problem))
        counts.update(problems=1, tests=len(problem.tests))
    return dict(counts)


def problems_of(profile: str, split: str) -> Iterable[Problem]:
    """Yield the problems of a split, as their source has them."""
    if profile == "paper":
        yield from map(dataset.from_record, codecontests.records(split, problems=codecontests.PROBLEMS[split]))
    else:
        yield from problem_source.make_problems(pool.directories([split]))


def read_pins() -> dict[str, str]:
    """Return the checksums that the repository has for the files of profile ``cpu``.

    Raises:
        ReBenchError: if they are those of other problems than the present ones.
    """
    pins = json.loads(CHECKSUMS.read_text(encoding="utf-8"))
    if (key := dataset.key("cpu")) != pins["key"]:
        raise ReBenchError(f"the problems have the key {key}, {CHECKSUMS} says {pins['key']}; {PIN}")
    files: dict[str, str] = pins["files"]
    return files


def check_pins(directory: Path, pins: Mapping[str, str]) -> None:
    """Compare files with their checksums in the repository.

    Raises:
        ReBenchError: if they differ, for then a score here could not be compared with scores elsewhere.
    """
    for file, expected in pins.items():
        if (actual := sha256_of(directory / file)) != expected:
            raise ReBenchError(
                f"{file} has SHA-256 {actual}, {CHECKSUMS} says {expected}: a tests.py makes other tests here"
            )


def pin(say: Callable[[str], None]) -> None:
    """Make the problems of profile ``cpu`` anew and write their checksums into the repository."""
    with tempfile.TemporaryDirectory() as name:
        manifest = write("cpu", Path(name), say)
    pins = {"key": manifest["key"], "files": manifest["files"]}
    CHECKSUMS.write_text(json.dumps(pins, indent=2) + "\n", encoding="utf-8")
