"""What others list the tasks by: ``eval.yaml`` in the form of inspect_evals, and the names in the README."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml  # type: ignore[import-untyped]

from re_bench.task.discovery import TaskFolder, open_task
from re_bench_inspect.listing import eval_yaml, version

if TYPE_CHECKING:
    from collections.abc import Sequence

TOP = Path(__file__).resolve().parents[3]
INSPECT = TOP / "integrations" / "inspect"
REMEDY = "run: python -m re_bench_inspect.listing"
KEYS = {
    "title", "description", "arxiv", "group", "contributors", "version", "tasks", "tags", "isolated", "metadata",
    "external_assets",
}  # fmt: skip
"""Those of inspect_evals that we use; it refuses others, as it does within tasks, metadata and assets."""


@pytest.fixture(scope="module")
def tasks() -> list[TaskFolder]:
    return [open_task(path.parent) for path in sorted(TOP.glob("tasks/*/task.toml"))]


@pytest.fixture(scope="module")
def listed(tasks: Sequence[TaskFolder]) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(eval_yaml(tasks))
    return data


def test_the_file_says_what_the_manifests_say(tasks: Sequence[TaskFolder]) -> None:
    assert (INSPECT / "eval.yaml").read_text() == eval_yaml(tasks), REMEDY


def test_the_listing_has_the_keys_of_inspect_evals_and_no_others(listed: dict[str, Any]) -> None:
    assert listed.keys() == KEYS
    assert {key for entry in listed["tasks"] for key in entry} == {"name", "dataset_samples", "comment", "kind"}
    assert {key for asset in listed["external_assets"] for key in asset} == {
        "type", "source", "fetch_method", "state", "comment",
    }  # fmt: skip
    assert listed["metadata"].keys() == {"requires", "sandbox"}
    assert "\n" not in listed["description"]


def test_every_task_is_listed_and_the_maintenance_is_marked(
    tasks: Sequence[TaskFolder], listed: dict[str, Any]
) -> None:
    entries = {entry["name"]: entry for entry in listed["tasks"]}
    assert entries.keys() == {task.name for task in tasks} | {"validate"}
    assert [name for name, entry in entries.items() if entry.get("kind") == "maintenance"] == ["validate"]
    (number,) = (task.manifest.version for task in tasks if task.name == "triton_cumsum")
    assert f"Profiles: cpu, gpu. Version {number}-A." in entries["triton_cumsum"]["comment"]


def test_a_new_version_of_any_task_raises_the_number(tasks: Sequence[TaskFolder]) -> None:
    first, *others = tasks
    newer = TaskFolder(first.directory, first.manifest.model_copy(update={"version": first.manifest.version + 1}))
    number, letter = version(tasks).split("-")
    assert version([newer, *others]) == f"{int(number) + 1}-{letter}"
    assert version([first]) == f"{first.manifest.version}-{letter}"


def test_all_names_of_the_readme_can_be_run(tasks: Sequence[TaskFolder]) -> None:
    named = set(re.findall(r"re_bench/(\w+)", (INSPECT / "README.md").read_text()))
    assert named == {task.name for task in tasks} | {"validate", "mlab"}
