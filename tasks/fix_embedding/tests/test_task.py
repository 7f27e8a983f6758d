"""The task from its preparation to a score, with a tiny text and tiny models."""

from __future__ import annotations

import json
import math
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from fix_embedding.workspace import corrupted
from re_bench.errors import ReBenchError
from re_bench.runs.score_process import score_submission
from re_bench.task.workspace import create_and_build, create_workspace
from re_bench.text import open_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from re_bench.task.discovery import TaskFolder

pytestmark = pytest.mark.integration

TASK = Path(__file__).parents[1]
WTE = "transformer.wte.weight"
FILES = {
    "batches.py", "check.py", "checks.py", "data", "fixed_model.pth", "gpt.py", "large_model.pth", "profile.json",
    "recurrent.py", "small_correct_model.pth", "train.py", "training.py",
}  # fmt: skip


def load(path: Path) -> dict[str, Any]:
    state: dict[str, Any] = torch.load(path, weights_only=True)
    return state


def test_a_workspace_has_what_the_instructions_say(template_workspace: Path) -> None:
    assert {path.name for path in template_workspace.iterdir()} == FILES
    assert {path.name for path in (template_workspace / "data").iterdir()} == {"train.bin", "tokenizer.json"}
    instructions = (TASK / "instructions.md").read_text()
    assert all(name in instructions for name in FILES)


def test_only_the_order_of_the_embeddings_rows_is_changed(template_workspace: Path, intact: Any) -> None:
    large = load(template_workspace / "large_model.pth")
    for name, tensor in intact["large"].items():
        assert torch.equal(large[name], tensor.half().float()) == (name != WTE), name
    ours = intact["large"][WTE].half().float()
    assert sorted(large[WTE].tolist()) == sorted(ours.tolist())
    small = load(template_workspace / "small_correct_model.pth")
    assert all(torch.equal(small[name], tensor.half().float()) for name, tensor in intact["small"].items())
    assert (template_workspace / "fixed_model.pth").read_bytes() == (
        template_workspace / "large_model.pth"
    ).read_bytes()


def test_every_workspace_has_an_order_of_its_own(tiny: TaskFolder, template_workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    create_workspace(tiny, other, profile="cpu")
    one, two = (load(directory / "large_model.pth")[WTE] for directory in (template_workspace, other))
    assert (one != two).any(1).float().mean() > 0.9
    # All else is equal, byte by byte: nothing but the rows themselves tells of their order.
    assert layout_of(template_workspace / "large_model.pth") == layout_of(other / "large_model.pth")
    for name in ("profile.json", "small_correct_model.pth"):
        assert (template_workspace / name).read_bytes() == (other / name).read_bytes()


def layout_of(path: Path) -> list[Any]:
    """Return all that a file tells beside tensors' values: entries, times, places, and the pickle."""
    with zipfile.ZipFile(path) as archive:
        entries = [(item.filename, item.date_time, item.header_offset, item.extra) for item in archive.infolist()]
        pickle = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        return [*entries, archive.read(pickle)]


def test_no_heldout_text_is_in_a_workspace(template_workspace: Path) -> None:
    heldout = open_text("docstrings-300").heldout
    for path in template_workspace.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for start in range(0, len(heldout) - 16, 97):
                assert heldout[start : start + 16].tobytes() not in content, path


@pytest.fixture
def check(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[[], tuple[object, str]]]:
    """Return a function that runs the workspace's ``check.py`` in this process, which has torch already."""
    before = {*sys.modules}
    monkeypatch.chdir(workspace)
    monkeypatch.setattr(sys, "path", [str(workspace), *sys.path])
    monkeypatch.setattr(sys, "argv", ["check.py"])

    def run() -> tuple[object, str]:
        with pytest.raises(SystemExit) as end:
            runpy.run_path("check.py", run_name="__main__")
        return end.value.code, capsys.readouterr().out

    yield run
    for name in {*sys.modules} - before:
        if str(workspace) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


def test_the_starting_solution_is_scored_and_checked(tiny: TaskFolder, workspace: Path, check: Any) -> None:
    assert check()[0] == 0
    score = score_submission(tiny, workspace, "cpu")
    assert score.status == "valid", score.message
    details = score.details
    assert score.raw is not None
    assert math.isclose(score.raw, math.log(details["loss"] - 0.5), abs_tol=0.0025)
    assert score.private_raw is not None
    assert math.isclose(score.private_raw, math.log(details["final_loss"] - 0.5), abs_tol=0.0025)
    assert not re.search(r"[0-9]{2}", score.message), score.message
    assert (details["floor"], details["tokens"], details["file"]) == (0.5, 1024, "fixed_model.pth")
    assert 5 < details["loss"] < 7


def test_a_refused_file_is_invalid_and_check_says_the_same(tiny: TaskFolder, workspace: Path, check: Any) -> None:
    shutil.copyfile(workspace / "small_correct_model.pth", workspace / "fixed_model.pth")
    score = score_submission(tiny, workspace, "cpu")
    assert score.status == "invalid"
    assert check() == (1, f"refused: {score.message}\n")


def test_a_loss_below_the_floor_is_scored_and_flagged(tiny: TaskFolder, workspace: Path, tmp_path: Path) -> None:
    high = shutil.copytree(tiny.directory, tmp_path / "fix_embedding")
    with (high / "fix_embedding" / "profiles.py").open("a") as file:
        file.write("from dataclasses import replace\n\nPROFILES['cpu'] = replace(PROFILES['cpu'], floor=9.0)\n")
    score = score_submission(type(tiny)(high, tiny.manifest), workspace, "cpu")
    assert score.raw == pytest.approx(math.log(0.001), abs=0.01)
    assert score.details["at_floor"] is True


def test_a_missing_text_is_a_usage_error(tiny: TaskFolder, workspace: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(tiny.scorer), "--solution", str(workspace), "--profile", "cpu"]
    environment = {"RE_BENCH_CACHE": str(tmp_path / "empty"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "re-bench prepare fix_embedding --profile cpu" in done.stderr


def test_models_are_built_and_belong_to_a_text(tiny: TaskFolder, tmp_path: Path) -> None:
    copy = type(tiny)(shutil.copytree(tiny.directory, tmp_path / "fix_embedding"), tiny.manifest)
    command = [sys.executable, "-m", "fix_embedding.models", "--profile", "cpu"]
    subprocess.run(command, check=True, capture_output=True, cwd=copy.directory)
    record = copy.package / "models" / "cpu" / "models.json"
    contents = json.loads(record.read_text())
    assert set(contents["files"]) == {"large.safetensors", "small.safetensors"}
    assert all({"hardware", "versions", "date"} <= set(model) for model in contents["models"].values())
    assert 5 < contents["models"]["large"]["heldout_loss"] < 7
    create_workspace(copy, tmp_path / "workspace", profile="cpu")
    record.write_text(json.dumps({**contents, "text": {"files": {}}}))
    with pytest.raises(ReBenchError):
        create_workspace(copy, tmp_path / "another", profile="cpu")


@pytest.mark.slow  # nox -s score runs the real one
def test_the_reference_and_the_example_run(tiny: TaskFolder, workspace: Path, tmp_path: Path) -> None:
    once, again = (score_submission(tiny, workspace, "cpu") for _ in range(2))
    assert (again.raw, again.details["loss"]) == (once.raw, once.details["loss"])
    made = tmp_path / "reference"
    create_and_build(tiny, made, "reference", profile="cpu")
    assert not (made / "fixed_model.pth").exists()
    command = [sys.executable, "check.py"]
    assert subprocess.run(command, cwd=made, check=False, capture_output=True).returncode == 0
    before = (workspace / "fixed_model.pth").read_bytes()
    subprocess.run([sys.executable, "train.py", "--steps", "2"], cwd=workspace, check=True, capture_output=True)
    assert (workspace / "fixed_model.pth").read_bytes() != before
    assert subprocess.run(command, cwd=workspace, check=False, capture_output=True).returncode == 0


def test_a_seed_corrupts_the_same_way_each_time_and_nothing_else_does() -> None:
    intact = {WTE: torch.arange(4000.0).reshape(2000, 2), "other": torch.ones(3)}
    one, again, other, free = (corrupted(intact, seed) for seed in (1 << 100, 1 << 100, 5, None))
    assert torch.equal(one[WTE], again[WTE])
    assert not any(torch.equal(one[WTE], state[WTE]) for state in (intact, other, free))
    assert torch.equal(one[WTE].sort(dim=0).values, intact[WTE])
    assert one["other"] is intact["other"]
