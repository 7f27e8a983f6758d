"""Forked programs are processes as others are: what they are given, how they end, and what is started really."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from forked_programs import Template

PROGRAM = """
import json, os, sys, time
seen = {"arguments": sys.argv[1:], "directory": os.getcwd(), "path": sys.path[:2], "parent": os.getppid()}
seen |= {"variable": os.environ.get("VARIABLE"), "session": os.getsid(0) == os.getpid(), "input": sys.stdin.read()}
print(json.dumps(seen), flush=True)
match sys.argv[1]:
    case "number": sys.exit(3)
    case "text": sys.exit("why it ends")
    case "error": raise ValueError("a mistake")
    case "interrupt": raise KeyboardInterrupt
    case "wait": time.sleep(600)
    case "again":
        variables = {**os.environ, "VARIABLE": "another"}
        os.execve(sys.executable, [sys.executable, "-P", "-m", "program", "end"], variables)
"""
PROGRAMS = Template("json")


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "program.py").write_text(PROGRAM)
    variables = {"VARIABLE": "given", "PYTHONPATH": str(tmp_path)}
    return {"cwd": tmp_path, "env": variables, "stdin": subprocess.DEVNULL, "text": True}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "program", *arguments]


@pytest.mark.parametrize(
    ("how", "status", "told"),
    [
        ("end", 0, ""),
        ("number", 3, ""),
        ("text", 1, "why it ends\n"),
        ("error", 1, "ValueError: a mistake\n"),
        ("interrupt", -signal.SIGINT, "KeyboardInterrupt\n"),
    ],
)
def test_it_ends_as_a_program_that_was_started(options: dict[str, Any], how: str, status: int, told: str) -> None:
    for fork in (True, False):
        done = PROGRAMS.run(command(how), capture_output=True, timeout=60, fork=fork, **options)
        assert (done.returncode, done.stderr.endswith(told)) == (status, True), done.stderr
        seen = json.loads(done.stdout)
        assert (seen["arguments"], seen["directory"], seen["input"]) == ([how], str(options["cwd"]), "")
        assert (seen["variable"], seen["path"]) == ("given", [str(options["cwd"])] * 2)
        assert (seen["session"], seen["parent"] == os.getpid()) == (False, not fork)


def test_it_can_be_killed_and_has_a_session_of_its_own(options: dict[str, Any]) -> None:
    with PROGRAMS.popen(command("wait"), stdout=subprocess.PIPE, start_new_session=True, **options) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["session"]
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.kill()
    assert process.returncode == process.poll() == -signal.SIGKILL


def test_one_that_starts_itself_again_goes_on(options: dict[str, Any]) -> None:
    done = PROGRAMS.run(command("again"), capture_output=True, timeout=60, **options)
    first, second = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, first["arguments"], second["arguments"]) == (0, ["again"], ["end"])
    assert (first["variable"], second["variable"]) == ("given", "another")


def test_another_sitecustomize_is_for_a_real_start(options: dict[str, Any]) -> None:
    (options["cwd"] / "sitecustomize.py").write_text("import os\nos.environ['VARIABLE'] = 'customized'\n")
    done = PROGRAMS.run(command("end"), capture_output=True, timeout=60, **options)
    seen = json.loads(done.stdout)
    assert (seen["variable"], seen["parent"]) == ("customized", os.getpid())
