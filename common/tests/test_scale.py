"""Test the choice between stored and measured anchors."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from re_bench.scoring.scale import Scale, choose_scale
from re_bench.task.discovery import TaskFolder, open_task
from re_bench.task.interface import RunAnchors

if TYPE_CHECKING:
    from pathlib import Path

RUN = RunAnchors(5.0, 4.0)
DATED = 'date = 2026-01-31, hardware = "H200"'
STORED = f'repeats = 1, spread.starting = 0, spread.reference = 0, versions = {{}}, {DATED}, where = "x"'


@pytest.fixture
def task(path: Path) -> TaskFolder:
    """Return the example task: ``gpu`` has published anchors, ``cpu`` none, and ``paper`` measures them."""
    path.write_text(path.read_text().replace("time_limit_s = 1\n", "time_limit_s = 1\nin_run = true\n"))
    return open_task(path.parent)


@pytest.mark.parametrize(
    ("profile", "measured", "scale"),
    [
        ("gpu", None, Scale(2.0, 1.0, "published")),
        ("gpu", RUN, Scale(5.0, 4.0, "measured in this run")),
        ("cpu", None, None),
        ("paper", RUN, Scale(5.0, 4.0, "measured in this run")),
    ],
)
def test_measured_anchors_override_stored_ones(
    task: TaskFolder, profile: str, measured: RunAnchors | None, scale: Scale | None
) -> None:
    assert choose_scale(task, profile, measured) == scale


@pytest.mark.parametrize("kind", ["measured", "modelled"])
def test_stored_anchors_name_hardware_and_date(path: Path, kind: str) -> None:
    anchors = f'[profiles.cpu]\nanchors = {{starting = 3, reference = 1, source = {{kind = "{kind}", {STORED}}}}}\n'
    path.with_name("anchors.toml").write_text(anchors)
    scale = choose_scale(open_task(path.parent), "cpu", None)
    assert scale == Scale(3.0, 1.0, f"stored: H200, {dt.date(2026, 1, 31)}")


def test_a_scale_gives_the_reward() -> None:
    assert Scale(2.0, 1.0, "published").reward(1.5) == 0.5
