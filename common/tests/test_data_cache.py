"""Cache entries are made once and atomically, and again if damaged; a read-only cache needs no lock."""

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


@pytest.mark.integration
@pytest.mark.parametrize("name", [".lock", "missing/.lock"])
def test_lock_does_nothing_on_a_read_only_file_system(tmp_path: Path, name: str) -> None:
    done = with_read_only(tmp_path, LOCKED.format(path=str(tmp_path / name)))
    assert (done.stdout, done.returncode) == ("in\n", 0), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.integration
def test_read_only_cache_is_a_usage_error(tmp_path: Path) -> None:
    done = with_read_only(tmp_path, MADE.format(path=str(tmp_path / "text")))
    last = done.stderr.splitlines()[-1]
    assert last.startswith("re_bench.errors.UsageError: ")
    assert f"{tmp_path}/text: missing or damaged, and cannot be created (Read-only file system)" in last


@pytest.fixture
def entry(tmp_path: Path) -> CacheEntry:
    return CacheEntry(tmp_path / "room" / "thing-1", "the thing", FILES, "run: prepare it")


def build(directory: Path) -> dict[str, Any]:
    for name in FILES:
        (directory / name).write_text(name)
    return {"seed": 3}


def unwanted(directory: Path) -> dict[str, Any]:
    raise AssertionError(directory)


def test_entry_is_made_once_with_checksums(entry: CacheEntry) -> None:
    manifest = entry.prepare(build)
    assert manifest == {"seed": 3, "files": {name: sha256_of(entry.directory / name) for name in FILES}}
    assert json.loads((entry.directory / "manifest.json").read_text()) == manifest
    assert entry.prepare(unwanted) == entry.open() == manifest


def test_missing_entry_is_a_usage_error(entry: CacheEntry) -> None:
    with pytest.raises(UsageError, match=r"the thing is not prepared in .*/room; run: prepare it"):
        entry.open()


@pytest.mark.parametrize("file", [*FILES, "manifest.json"])
def test_damaged_entry_is_refused_and_made_again(entry: CacheEntry, file: str) -> None:
    manifest = entry.prepare(build)
    (entry.directory / file).write_text("x")
    with pytest.raises(ReBenchError, match=r"thing-1.*; run: prepare it"):
        entry.open()
    lines: list[str] = []
    assert entry.prepare(build, lines.append) == entry.open() == manifest
    assert len(lines) == 1
    assert lines[0].startswith(f"the thing: building it again: {entry.directory}")


def test_open_verifies_only_the_checked_files(entry: CacheEntry) -> None:
    entry.prepare(build)
    (entry.directory / "large.bin").write_text("x")
    replace(entry, checked=("small.bin",)).open()


def test_entry_that_fails_its_check_is_neither_kept_nor_opened(entry: CacheEntry) -> None:
    def check(_directory: Path, manifest: Mapping[str, Any]) -> None:
        if manifest["seed"] != 4:
            raise ReBenchError("another seed")

    strict = replace(entry, check=check)
    with pytest.raises(ReBenchError, match="another seed"):
        strict.prepare(build)
    assert [path.name for path in entry.directory.parent.iterdir()] == [".thing-1.lock"]
    entry.prepare(build)
    with pytest.raises(ReBenchError, match="another seed"):
        strict.open()


def test_failed_preparation_keeps_the_old_entry(entry: CacheEntry) -> None:
    entry.prepare(build)
    (entry.directory / "small.bin").write_text("x")
    with pytest.raises(AssertionError):
        entry.prepare(unwanted)
    assert (entry.directory / "small.bin").read_text() == "x"


def test_cache_key_is_stable() -> None:
    assert cache_key(1, ["a"]) == cache_key(1, ["a"]) != cache_key(1, ["b"])
    assert len(cache_key(1)) == 12
    assert cache_key(2, "docstrings", 2048, []) == "c2b10193700d"  # existing caches stay valid
