"""An entry of the cache is made once, whole, and again when damaged; a read-only cache is read without a lock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from re_bench.data.cache import CacheEntry, cache_key
from re_bench.data.files import sha256_of
from re_bench.errors import ReBenchError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILES = ("large.bin", "small.bin")

LOCKED = (
    "from pathlib import Path; from re_bench.data.cache import file_lock\nwith file_lock(Path({path!r})): print('in')"
)
MADE = (
    "from pathlib import Path; from re_bench.data.cache import new_directory\nwith new_directory(Path({path!r})): pass"
)


def with_read_only(directory: Path, program: str) -> subprocess.CompletedProcess[str]:
    command = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(directory), str(directory)]
    command += [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))


@pytest.mark.parametrize("name", [".lock", "missing/.lock"])
def test_nobody_waits_where_nobody_can_write(tmp_path: Path, name: str) -> None:
    done = with_read_only(tmp_path, LOCKED.format(path=str(tmp_path / name)))
    assert (done.stdout, done.returncode) == ("in\n", 0), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_there_is_named(tmp_path: Path) -> None:
    done = with_read_only(tmp_path, MADE.format(path=str(tmp_path / "text")))
    last = done.stderr.splitlines()[-1]
    assert last.startswith("re_bench.errors.UsageError: ")
    assert f"{tmp_path}/text: missing or damaged, and cannot be made there (Read-only file system)" in last


@pytest.fixture
def entry(tmp_path: Path) -> CacheEntry:
    return CacheEntry(tmp_path / "room" / "thing-1", "the thing", FILES, "run: prepare it")


def make(directory: Path) -> dict[str, Any]:
    for name in FILES:
        (directory / name).write_text(name)
    return {"seed": 3}


def unwanted(directory: Path) -> dict[str, Any]:
    raise AssertionError(directory)


def test_an_entry_is_made_once_with_checksums_in_its_manifest(entry: CacheEntry) -> None:
    manifest = entry.prepare(make)
    assert manifest == {"seed": 3, "files": {name: sha256_of(entry.directory / name) for name in FILES}}
    assert json.loads((entry.directory / "manifest.json").read_text()) == manifest
    assert entry.prepare(unwanted) == entry.open() == manifest


def test_a_missing_entry_is_a_usage_error_that_says_what_to_do(entry: CacheEntry) -> None:
    with pytest.raises(UsageError, match=r"the thing is not prepared in .*/room; run: prepare it"):
        entry.open()


@pytest.mark.parametrize("file", [*FILES, "manifest.json"])
def test_a_damaged_entry_is_refused_and_made_again_with_the_reason(entry: CacheEntry, file: str) -> None:
    manifest = entry.prepare(make)
    (entry.directory / file).write_text("x")
    with pytest.raises(ReBenchError, match=r"thing-1.*; run: prepare it"):
        entry.open()
    said: list[str] = []
    assert entry.prepare(make, said.append) == entry.open() == manifest
    assert len(said) == 1
    assert said[0].startswith(f"the thing: made again, because of this: {entry.directory}")


def test_files_that_are_not_to_be_checked_are_not_read_when_it_is_opened(entry: CacheEntry) -> None:
    entry.prepare(make)
    (entry.directory / "large.bin").write_text("x")
    replace(entry, checked=("small.bin",)).open()


def test_what_fails_the_entrys_own_check_is_not_put_into_place_and_not_opened(entry: CacheEntry) -> None:
    def check(_directory: Path, manifest: Mapping[str, Any]) -> None:
        if manifest["seed"] != 4:
            raise ReBenchError("another seed")

    strict = replace(entry, check=check)
    with pytest.raises(ReBenchError, match="another seed"):
        strict.prepare(make)
    assert [path.name for path in entry.directory.parent.iterdir()] == [".thing-1.lock"]
    entry.prepare(make)
    with pytest.raises(ReBenchError, match="another seed"):
        strict.open()


def test_what_was_there_stays_if_making_it_again_fails(entry: CacheEntry) -> None:
    entry.prepare(make)
    (entry.directory / "small.bin").write_text("x")
    with pytest.raises(AssertionError):
        entry.prepare(unwanted)
    assert (entry.directory / "small.bin").read_text() == "x"


def test_keys_differ_with_what_an_entry_is_made_from() -> None:
    assert cache_key(1, ["a"]) == cache_key(1, ["a"]) != cache_key(1, ["b"])
    assert len(cache_key(1)) == 12
    assert cache_key(2, "docstrings", 2048, []) == "c2b10193700d"  # so that caches stay valid
