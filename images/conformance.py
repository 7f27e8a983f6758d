"""The sandbox ``container`` on a real engine: every attack of the tests, and scores with the tasks' images."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.sandbox.container import ENGINE, IMAGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engines import Engine

RE_BENCH = (sys.executable, "-m", "re_bench.cli")
ATTACKS = (sys.executable, str(Path(__file__).parents[1] / "common" / "tests" / "support" / "more_attacks.py"))


def attack(engine: Engine, images: Mapping[str, str], profile: str) -> list[str]:
    """Attack a container of the first image, and score each task's baseline in containers of its own image.

    Args:
        engine: Docker or Podman.
        images: the image's tag of each task.
        profile: the profile to score in.

    Returns:
        What did not hold; attacks and scores are printed.
    """
    if not engine.runs_containers:
        return [f"NOT RUN: {engine.kind} makes no containers; install Docker or Podman"]
    problems: list[str] = []
    for number, (task, tag) in enumerate(images.items()):
        environment = os.environ | {ENGINE: engine.command, IMAGE: tag}
        if not number:
            attacked = subprocess.run(
                [*ATTACKS, "--sandbox", "container"], env=environment, check=False, stdout=sys.stderr
            )
            if attacked.returncode != 0:
                reasons = {1: "attacks succeeded; the lines above say which"}
                problems.append(reasons.get(attacked.returncode, "NOT RUN: no sandbox; the line above says why"))
        problems += _problems_of_score(task, profile, environment)
    return problems


def _problems_of_score(task: str, profile: str, environment: Mapping[str, str]) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="re-bench-images-") as place:
        workspace = str(Path(place) / "workspace")
        subprocess.run([*RE_BENCH, "workspace", task, workspace, "--profile", profile], check=True, stdout=sys.stderr)
        command = [*RE_BENCH, "score", task, workspace, "--profile", profile, "--sandbox", "container"]
        done = subprocess.run([*command, "--json"], env=environment, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        yield f"{task}: its baseline in containers of its image: {done.stdout[-400:]}{done.stderr[-400:]}"
    else:
        score = json.loads(done.stdout)
        print(f"{task} in containers of its image: reward {score['reward']}, {score['seconds']:.1f} s", file=sys.stderr)
