"""A cache that is mounted read-only is read without a lock, and what it lacks is said in a line."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

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
