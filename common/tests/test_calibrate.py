"""Test that calibration rebuilds a task's truth and writes only anchors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from re_bench.task.discovery import open_task

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from re_bench.sandbox.spec import Backend
    from re_bench.task.discovery import TaskFolder

    Change = Callable[[TaskFolder, str, str, str], TaskFolder]
    ReBench = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.integration

REBUILD = """\
        from pathlib import Path
        import score  # a module of the task

        name = f"{setup.profile_name} {setup.profile} {setup.instance} {cluster}"
        Path(__file__).with_name("rebuilt").write_text(f"{name} {score.__file__}")
"""


def with_rebuild(task: TaskFolder, change: Change, body: str) -> TaskFolder:
    head = "    def score(self"
    return change(task, "score.py", head, f"    def rebuild(self, setup, cluster):\n{body}\n{head}")


def test_calibrate_rebuilds_the_truth_first(
    made_up: TaskFolder, backend: Backend, change: Change, re_bench: ReBench
) -> None:
    del backend
    task = with_rebuild(made_up, change, REBUILD)
    manifest = (task.directory / "task.toml").read_bytes()
    done = re_bench("calibrate", task.directory, "--profile", "cpu", "--repeats", "1", "--replace-published")
    assert done.returncode == 0, done.stderr
    assert (task.directory / "rebuilt").read_text() == f"cpu small 0 None {task.scorer}"
    assert f"written to {task.directory / 'anchors.toml'}\n" in done.stdout
    assert (task.directory / "task.toml").read_bytes() == manifest
    assert "spread" not in (task.directory / "anchors.toml").read_text()  # unknown after a single repeat
    anchors = open_task(task.directory).manifest.anchors("cpu")
    assert anchors is not None
    assert (anchors.source.task_version, anchors.source.digest) == (task.manifest.version, anchors.compute_digest())


def test_calibrate_writes_no_anchors_without_the_truth_or_for_another_instance(
    made_up: TaskFolder, change: Change, re_bench: ReBench
) -> None:
    task = with_rebuild(made_up, change, "        raise SystemExit(3)\n")
    published = re_bench("calibrate", task.directory, "--profile", "cpu")
    assert published.returncode == 2
    message = r"task\.toml:\d+: profile cpu has published anchors; to replace them .*, use --replace-published\n"
    assert re.search(message, published.stderr), published.stderr
    calibrate = ("calibrate", task.directory, "--profile", "cpu", "--replace-published")
    failed = re_bench(*calibrate)
    assert (failed.returncode, "rebuilding the ground truth failed" in failed.stderr) == (1, True), failed.stderr
    instances = {"RE_BENCH_INSTANCES": '{"made_up/cpu": 2}'}
    refused = re_bench(*calibrate, **instances)
    assert (refused.returncode, "only instance 0 can be calibrated" in refused.stderr) == (2, True), refused.stderr
    assert not (task.directory / "anchors.toml").exists()
