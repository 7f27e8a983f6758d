"""The shell of an ordinary user's server, and the one without any sandbox."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from shell_session import processes_with, session_in

import re_bench
import re_bench_server

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDINARY = 54321
"""A user id that is nobody's."""
LONG, BARE = f"141.4{os.getpid()}", f"173.2{os.getpid()}"  # seconds; no other worker's tests find these programs
COMMANDS = [
    ("echo new > made; export A=5; cd /tmp; whoami", 60, 0, "agent\n"),
    ("echo $A $PWD; cat /workspace/made /workspace/given", 60, 0, "5 /tmp\nnew\ngiven\n"),
    (f"sleep {LONG} & sleep {LONG}", 1, None, ""),
    ("echo $A; pgrep -c sleep", 60, 1, "5\n0\n"),
    ("kill -9 -1", 60, None, "[all processes of the session were ended"),
    ("pwd", 60, 0, "/tmp\n"),  # noqa: S108 - inside
]
PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from re_bench.sandbox import open_backend
from re_bench.limits import Limits
from re_bench_server.shell.shell import Shell

async def main(place, commands):
    (place / "workspace").mkdir()
    (place / "workspace" / "given").write_text("given\\n")
    shell = await Shell.open(
        open_backend("bubblewrap"), place / "workspace", place / "home", limits=Limits(), environment={}, scratch=place
    )
    outputs = [await shell.run(command, limit_s) for command, limit_s in commands]
    await shell.close()
    left = sorted(path.name for path in place.iterdir())
    print(json.dumps([[(output.status, output.text) for output in outputs], left]))

asyncio.run(main(Path(sys.argv[1]), json.loads(sys.argv[2])))
"""


@pytest.fixture
def readable() -> Iterator[Path]:
    """Return a directory that everybody may read, with what the shell imports."""
    with tempfile.TemporaryDirectory(prefix="re-bench-ordinary-") as name:
        directory, common = Path(name), Path(re_bench.__file__).parent
        (directory / "re_bench").mkdir()
        for module in ("__init__.py", "normalise.py", "errors.py", "processes.py", "limits.py"):
            shutil.copy(common / module, directory / "re_bench")
        ours = Path(re_bench_server.__file__).parent
        (directory / "re_bench" / "runs").mkdir()
        for module in ("__init__.py", "elapsed.py"):
            shutil.copy(common / "runs" / module, directory / "re_bench" / "runs")
        shutil.copytree(Path(psutil.__file__).parent, directory / "psutil")
        rooms = [(common / room, f"re_bench/{room}") for room in ("sandbox", "guest", "data")]
        for source, target in (*rooms, (ours, "re_bench_server")):
            shutil.copytree(source, directory / target, ignore=shutil.ignore_patterns("__pycache__"))
        binding = importlib.util.find_spec("pyseccomp")
        if binding is not None and binding.origin is not None:
            shutil.copy(binding.origin, directory)
        (directory / "own").mkdir()
        subprocess.run(["chmod", "-R", "a+rX", name], check=True)
        os.chown(directory / "own", ORDINARY, ORDINARY)
        yield directory


def as_ordinary_user(directory: Path, *command: str) -> subprocess.CompletedProcess[str]:
    drop = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "env"]
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(directory), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*drop, *command], cwd="/", env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def python_for_everybody(directory: Path) -> str:
    """Return a Python, of this version or a later one, that an ordinary user can start."""
    candidates = [sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"]
    for candidate in candidates:
        script = "import sys; sys.exit(sys.version_info < (3, 11))"
        if as_ordinary_user(directory, candidate, "-c", script).returncode == 0:
            return candidate
    pytest.skip(f"an ordinary user can start none of {', '.join(candidates)} as Python 3.11 or later")


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
def test_an_ordinary_user_has_the_same_shell(readable: Path) -> None:
    commands = json.dumps([(command, limit_s) for command, limit_s, _status, _text in COMMANDS])
    python = python_for_everybody(readable)
    finished = as_ordinary_user(readable, python, "-c", PROGRAM, str(readable / "own"), commands)
    if "no sandbox" in finished.stderr:
        pytest.skip(f"an ordinary user has no sandbox here: {finished.stderr.splitlines()[-1]}")
    assert finished.stderr == ""
    outputs, left = json.loads(finished.stdout)
    for (command, _limit_s, status, text), (found_status, found_text) in zip(COMMANDS, outputs, strict=True):
        assert found_status == status, (command, found_text)
        assert text in found_text, command
    assert left == ["home", "workspace"]
    assert processes_with(f"sleep {LONG}") == []


def test_without_a_sandbox_the_shell_is_the_same_but_for_the_walls(tmp_path: Path) -> None:
    with session_in(tmp_path, backend="none") as session:
        assert session.says("pwd; echo $HOME").split() == [str(session.workspace), str(tmp_path / "home")]
        session.run(f"export A=5; cd /; sleep {BARE} &")
        assert session.run(f"sleep {BARE}", 0.5).timed_out
        assert session.says("echo $A $PWD") == "5 /\n"
        output = session.run("seq 1 100000")
        assert output.file is not None
        assert output.file.read_text().endswith("\n100000\n")
        assert len(processes_with(f"sleep {BARE}")) == 1
        assert "the shell ended" in session.run("exit 3").text
        session.run(f"pkill -f 'sleep {BARE.replace('.', '[.]')}'; kill -9 $PPID")
        assert session.says("pwd") == "/\n"
        session.run(f"sleep {BARE} & sleep {BARE} &")
    assert processes_with(f"sleep {BARE}") == []
    assert processes_with(str(tmp_path)) == []
