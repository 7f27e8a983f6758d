"""Calibration runs the program that makes a task's computed truth, and writes no file but the anchors'."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    import pytest

    from re_bench.sandbox.spec import Backend
    from re_bench.task.discovery import TaskFolder

    Change = Callable[[TaskFolder, str, str, str], TaskFolder]
    ReBench = Callable[..., subprocess.CompletedProcess[str]]

REBUILD = """\
import argparse
from pathlib import Path

import score  # a module of the task

parser = argparse.ArgumentParser()
parser.add_argument("--profile")
Path(__file__).with_name("rebuilt").write_text(f"{parser.parse_args().profile} {score.__file__}")
"""


def with_rebuild(task: TaskFolder, change: Change, program: str) -> TaskFolder:
    tools = task.directory / "tools"
    tools.mkdir()
    (tools / "rebuild.py").write_text(program)
    return change(task, "task.toml", "[reference]\n", '[rebuild]\nprogram = "tools/rebuild.py"\n\n[reference]\n')


def test_the_truth_is_rebuilt_first_by_a_program_that_can_import_the_task(
    made_up: TaskFolder, backend: Backend, change: Change, re_bench: ReBench
) -> None:
    del backend  # there is one
    task = with_rebuild(made_up, change, REBUILD)
    manifest = (task.directory / "task.toml").read_bytes()
    done = re_bench("calibrate", task.directory, "--profile", "cpu", "--repeats", "1")
    assert done.returncode == 0, done.stderr
    assert (task.directory / "tools" / "rebuilt").read_text() == f"cpu {task.scorer}"
    assert f"written to {task.directory / 'anchors.toml'}\n" in done.stdout
    assert (task.directory / "task.toml").read_bytes() == manifest


def test_without_its_truth_nothing_is_calibrated(made_up: TaskFolder, change: Change, re_bench: ReBench) -> None:
    task = with_rebuild(made_up, change, "raise SystemExit(3)")
    failed = re_bench("calibrate", task.directory, "--profile", "cpu")
    (task.directory / "tools" / "rebuild.py").unlink()
    missing = re_bench("calibrate", task.directory, "--profile", "cpu")
    assert (failed.returncode, missing.returncode) == (1, 1)
    assert "made_up: the truth was not rebuilt:" in failed.stderr
    assert "tools/rebuild.py ended with exit status 3" in failed.stderr
    assert "tools/rebuild.py is missing, which the manifest names in [rebuild]" in missing.stderr
    assert not (task.directory / "anchors.toml").exists()


def test_anchors_of_another_instance_are_not_the_profiles(
    made_up: TaskFolder, re_bench: ReBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RE_BENCH_INSTANCES", '{"made_up/cpu": 2}')
    refused = re_bench("calibrate", made_up.directory, "--profile", "cpu")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "instance 2 is chosen, whose anchors are made with its truth; run: re-bench prepare" in refused.stderr
