"""The secret of a machine: made once, kept from others, and never what is drawn from it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from re_bench.data import instances as secret
from re_bench.errors import ReBenchError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = "from re_bench.data import instances as secret; print(secret.secret_seed('a'), secret.secret_seed('b'))"


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cache of a machine that has no secret yet."""
    monkeypatch.setenv("RE_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return tmp_path / "cache"


def test_processes_that_make_it_at_once_agree(directory: Path) -> None:
    command = [sys.executable, "-c", PROGRAM]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _process in range(4)]
    answers = {process.communicate()[0] for process in running}
    assert len(answers) == 1
    one, two = map(int, answers.pop().split())
    assert one != two
    assert max(one, two).bit_length() > 100
    assert [path.name for path in directory.iterdir()] == [secret.MACHINE_FILE]
    assert (directory / secret.MACHINE_FILE).stat().st_mode & 0o777 == 0o600
    assert secret.secret_seed("a") == one
    name = secret.secret_name()
    assert name not in f"{one:032x}"
    assert name not in (directory / secret.MACHINE_FILE).read_bytes().hex()


def test_another_machine_has_other_seeds(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, name = secret.secret_seed("a"), secret.secret_name()
    monkeypatch.setenv("RE_BENCH_CACHE", str(directory / "other"))
    assert secret.secret_seed("a") != here
    assert secret.secret_name() != name


def test_a_cache_that_cannot_be_written_leaves_it_to_the_users_own(directory: Path) -> None:
    directory.write_text("no directory")
    seed = secret.secret_seed("a")
    kept = directory.parent / "home" / "re-bench"
    assert [path.name for path in kept.iterdir()] == [secret.MACHINE_FILE]
    assert secret.secret_seed("a") == seed


def test_without_any_place_it_is_said_what_to_do(directory: Path) -> None:
    for path in (directory, directory.parent / "home"):
        path.write_text("no directory")
    with pytest.raises(UsageError, match=r"cannot be kept: .*cache.*; set RE_BENCH_CACHE"):
        secret.secret_seed("a")


def test_a_user_without_a_home_needs_a_cache_alone(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)  # whom the system does not know
    secret.secret_seed("a")
    assert [path.name for path in directory.iterdir()] == [secret.MACHINE_FILE]
    monkeypatch.delenv("RE_BENCH_CACHE")
    with pytest.raises(UsageError, match=r"cannot be kept: .*home directory.*; set RE_BENCH_CACHE"):
        secret.secret_seed("a")


@pytest.mark.parametrize(
    ("content", "mode", "reason"), [(b"short", 0o600, "damaged"), (b"x" * 32, 0o644, "others can")]
)
def test_a_secret_that_is_none_is_refused(directory: Path, content: bytes, mode: int, reason: str) -> None:
    directory.mkdir()
    (directory / secret.MACHINE_FILE).write_bytes(content)
    (directory / secret.MACHINE_FILE).chmod(mode)
    with pytest.raises(ReBenchError, match=f"{reason}.*remove it"):
        secret.secret_seed("a")
