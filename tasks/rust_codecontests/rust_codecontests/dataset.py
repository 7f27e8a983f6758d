"""The problems of a profile, as ``prepare.py`` has put them into the cache, and what of them a submission is given.

A file holds the problems of a split, one JSON object a line, under the field names of CodeContests, and in every line
the canary. ``test.jsonl`` is held out: it stays in the cache, which no sandbox shows.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from re_bench.data.cache import cache_directory, check_files, undamaged
from re_bench.data.huggingface import identity
from re_bench.errors import UsageError
from rust_codecontests import pool
from rust_codecontests.codecontests import CODECONTESTS
from rust_codecontests.judge.verdicts import Test

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = [
    "SPLITS",
    "Problem",
    "check_prepared",
    "from_record",
    "key",
    "prepared_directory",
    "read",
    "remedy",
    "to_json_line",
    "to_record",
    "without_hidden_tests",
]

SPLITS = {"cpu": pool.SPLITS, "paper": ("valid", "test")}
"""The splits of each profile. CodeContests' own training split has gigabytes that nothing here needs."""

MANIFEST = "manifest.json"
_VERSION = 1  # raise it with every change of what is written, which changes the keys
_NANOS = 10**9
_HIDDEN = ("private_tests", "generated_tests")


@dataclass(frozen=True)
class Problem:
    """A programming problem with all its tests."""

    name: str
    description: str
    """The statement, with the public tests as examples at its end."""
    public: tuple[Test, ...]
    private: tuple[Test, ...]
    """Hidden, made by hand."""
    generated: tuple[Test, ...]
    """Hidden, made at random."""
    time_limit_s: float
    """CPU seconds for each test."""
    memory_limit_mib: int
    difficulty: str

    @property
    def tests(self) -> tuple[Test, ...]:
        """All tests, the public ones first."""
        return (*self.public, *self.private, *self.generated)


def read(profile: str, split: str) -> list[Problem]:
    """Return the problems of a split, in a fixed order, from the cache.

    Args:
        profile: ``cpu`` or ``paper``.
        split: ``train``, ``valid`` or ``test``; profile ``paper`` has no ``train``.

    Raises:
        UsageError: if there is no such split, or it is not prepared here.
        ReBenchError: if the prepared file is not what its manifest says.
    """
    if split not in SPLITS.get(profile, ()):
        splits = ", ".join(f"{name} has {' '.join(names)}" for name, names in SPLITS.items())
        raise UsageError(f"rust_codecontests has no split {split!r} in profile {profile!r}; {splits}")
    directory = prepared_directory(profile)
    check_prepared(directory, profile, [split])
    with undamaged(directory, remedy(profile)), (directory / f"{split}.jsonl").open(encoding="utf-8") as file:
        return [from_record(json.loads(text)) for text in file]


def to_record(problem: Problem) -> dict[str, Any]:
    """Return all of a problem under the field names of CodeContests."""
    nanos = round(problem.time_limit_s * _NANOS)
    return {
        "name": problem.name,
        "description": problem.description,
        "public_tests": _columns(problem.public),
        "private_tests": _columns(problem.private),
        "generated_tests": _columns(problem.generated),
        "time_limit": {"seconds": nanos // _NANOS, "nanos": nanos % _NANOS},
        "memory_limit_bytes": problem.memory_limit_mib << 20,
        "difficulty": problem.difficulty,
    }


def without_hidden_tests(problem: Problem) -> dict[str, Any]:
    """Return what a submission is given: the record without its hidden tests."""
    return {name: value for name, value in to_record(problem).items() if name not in _HIDDEN}


def from_record(fields: Mapping[str, Any]) -> Problem:
    """Return the problem of a record; further fields do not matter.

    Raises:
        KeyError, TypeError, ValueError: for one that is not as :func:`to_record` makes them.
    """
    limit = fields["time_limit"]
    return Problem(
        name=fields["name"],
        description=fields["description"],
        public=_tests(fields["public_tests"]),
        private=_tests(fields["private_tests"]),
        generated=_tests(fields["generated_tests"]),
        time_limit_s=limit["seconds"] + limit["nanos"] / _NANOS,
        memory_limit_mib=-(-fields["memory_limit_bytes"] >> 20),  # rounded up
        difficulty=fields["difficulty"],
    )


def to_json_line(problem: Problem) -> str:
    """Return a problem as a line of a prepared file."""
    return json.dumps({**to_record(problem), "canary": pool.CANARY}, ensure_ascii=False) + "\n"


def prepared_directory(profile: str) -> Path:
    """Return where the problems of a profile lie or will lie; another place for every change of their sources."""
    return cache_directory() / "rust_codecontests" / f"{profile}-{key(profile)}"


def key(profile: str) -> str:
    """Return twelve hex digits that differ with all that the problems of a profile are made from."""
    sources: Iterable[str] = [identity(CODECONTESTS)] if profile == "paper" else _own_sources()
    return hashlib.sha256(json.dumps([_VERSION, *sources]).encode()).hexdigest()[:12]


def check_prepared(directory: Path, profile: str, splits: Sequence[str]) -> None:
    """Compare prepared files with their manifest.

    Raises:
        UsageError: if nothing is prepared here.
        ReBenchError: if a file is not what it was.
    """
    if not directory.is_dir():
        raise UsageError(f"rust_codecontests: its problems are not prepared in {directory.parent}; {remedy(profile)}")
    with undamaged(directory, remedy(profile)):
        files = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))["files"]
        check_files(directory, {f"{split}.jsonl": files[f"{split}.jsonl"] for split in splits}, remedy(profile))


def remedy(profile: str) -> str:
    """Say what to type."""
    return f"run: re-bench prepare rust_codecontests --profile {profile}"


def _own_sources() -> Iterable[str]:
    for directory in pool.directories():
        yield f"{directory.parent.name}/{directory.name}"
        for name in ("problem.toml", "statement.md", "tests.py"):
            yield hashlib.sha256((directory / name).read_bytes()).hexdigest()


def _columns(tests: Iterable[Test]) -> dict[str, list[str]]:
    tests = tuple(tests)
    return {"input": [test.input for test in tests], "output": [test.output for test in tests]}


def _tests(columns: Mapping[str, Sequence[str]]) -> tuple[Test, ...]:
    return tuple(Test(*pair) for pair in zip(columns["input"], columns["output"], strict=True))
