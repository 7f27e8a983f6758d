"""Test creating workspaces and running solutions' commands."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from re_bench.errors import ReBenchError, UsageError
from re_bench.task.workspace import build, create_and_build, create_workspace
from re_bench.testing import run_process

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from re_bench.sandbox.spec import Backend
    from re_bench.task.discovery import TaskFolder

    Change = Callable[[TaskFolder, str, str, str], TaskFolder]
    Command = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.integration

MIB = 1 << 20


def contents(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def made(task: TaskFolder, workspace: Path) -> dict[str, Any]:
    """Create the reference's workspace, run its command, and return what the command saw."""
    create_and_build(task, workspace, "reference", profile="cpu")
    seen: dict[str, Any] = json.loads((workspace / "seen.json").read_text())
    return seen


def test_layers_of_a_workspace(made_up: TaskFolder, tmp_path: Path) -> None:
    create_workspace(made_up, tmp_path / "agent", profile="cpu")
    expected = {"notes": "starter\n", "look_for": "/", "data": "prepared for cpu", "both": "baseline", "number": "0"}
    assert contents(tmp_path / "agent") == expected
    create_workspace(made_up, tmp_path / "cheat", "cheats/words", profile="gpu")
    assert contents(tmp_path / "cheat") == expected | {
        "data": "prepared for gpu",
        "make.sh": "printf ten > number\n",
    }


def test_built_files_of_the_reference_are_only_in_its_workspace(
    made_up: TaskFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RE_BENCH_CACHE", str(tmp_path / "cache"))
    built = tmp_path / "cache" / "made_up" / "reference" / "cpu"
    built.mkdir(parents=True)
    (built / "weights").write_text("large")
    for variant, profile, there in (
        ("reference", "cpu", True),
        ("reference", "gpu", False),
        ("baseline", "cpu", False),
    ):
        create_workspace(made_up, tmp_path / f"{variant}-{profile}", variant, profile=profile)
        assert ("weights" in contents(tmp_path / f"{variant}-{profile}")) == there


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        for name in", '        raise KeyError("half-way")\n        for name in'),
        ("setup.log(f", 'raise KeyError("at once")\n            setup.log(f'),
    ],
)
def test_a_failed_preparation_leaves_no_workspace(
    made_up: TaskFolder, tmp_path: Path, old: str, new: str, change: Change
) -> None:
    task = change(made_up, "score.py", old, new)
    with pytest.raises(ReBenchError, match="KeyError"):
        create_workspace(task, tmp_path / "workspace", profile="cpu")
    assert not (tmp_path / "workspace").exists()


def test_an_existing_directory_is_not_changed(made_up: TaskFolder, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "work").write_text("of days")
    with pytest.raises(UsageError, match="File exists; give a directory that does not exist yet"):
        create_and_build(made_up, tmp_path / "mine", "reference", profile="cpu")
    assert contents(tmp_path / "mine") == {"work": "of days"}


def test_the_references_command_runs_in_the_sandbox(
    backend: Backend, made_up: TaskFolder, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seen = made(made_up, tmp_path / "workspace")
    assert (seen["directory"], seen["profile"]) == (str(tmp_path / "workspace"), "cpu")
    assert (seen["python"], seen["data"]) == (backend.python, "prepared for cpu")
    assert seen["limits"] == [30 * (os.cpu_count() or 1), 1500 * MIB, 3 * MIB, 50]
    assert (tmp_path / "workspace" / "number").read_text() == "10"
    begun, ended = capfd.readouterr().err.splitlines()[-2:]
    assert begun == "made_up: reference: running python train.py 10 (time limit 30 s)"
    assert ended.startswith("made_up: reference: finished in ")


def test_a_solutions_command_sees_only_its_workspace(backend: Backend, made_up: TaskFolder, tmp_path: Path) -> None:
    del backend
    secrets = ["score.py", "reference/train.py", "../cache/made_up/cpu/data", "../elsewhere"]
    (tmp_path / "elsewhere").touch()
    workspace = tmp_path / "workspace"
    paths = [str(workspace / "data"), *(str(made_up.directory / name) for name in secrets), __file__]
    (made_up.directory / "starter" / "look_for").write_text("\n".join(paths))
    assert made(made_up, workspace)["readable"] == paths[:1]
    assert all(Path(path).exists() for path in paths)


def test_a_cache_in_site_packages_is_hidden(
    backend: Backend, made_up: TaskFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    del backend
    cache = Path(sys.prefix) / "re-bench-cache-of-a-test"  # for example, the user's home is inside the environment
    monkeypatch.setenv("RE_BENCH_CACHE", str(cache))
    (made_up.directory / "starter" / "look_for").write_text(f"{sys.executable}\n{cache}/made_up/cpu/data")
    try:
        seen = made(made_up, tmp_path / "workspace")
    finally:
        shutil.rmtree(cache)
    assert seen["readable"] == [sys.executable]


def test_a_cheats_command_is_run(backend: Backend, made_up: TaskFolder, tmp_path: Path) -> None:
    del backend
    create_and_build(made_up, tmp_path / "workspace", "cheats/words", profile="cpu")
    assert (tmp_path / "workspace" / "number").read_text() == "ten"


def test_a_solution_without_a_command_needs_no_sandbox(
    made_up: TaskFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    arguments = ("workspace", made_up.directory, tmp_path / "workspace", "--profile", "cpu")
    refused = run_process(*arguments, "--with", "reference")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "re-bench: no sandbox: " in refused.stderr
    assert not (tmp_path / "workspace").exists()
    assert run_process(*arguments).returncode == 0


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ('raise KeyError("no such layer")', r"\(exit status 1\):\n(.*\n)*KeyError: 'no such layer'"),
        ("import time; time.sleep(60)", r"\(it ran longer than 2 s( \(it took .*\))?\):\n"),
        ('Path("large").write_bytes(bytes(4 << 20))', r"\(.*\):\n(.*\n)*OSError: .*File too large"),
    ],
)
def test_a_failing_command_is_an_error_and_leaves_no_workspace(
    made_up: TaskFolder, tmp_path: Path, new: str, reason: str, change: Change
) -> None:
    task = change(made_up, "task.toml", '"train.py", "10"]\ntime_limit_s = 30', '"train.py", "10"]\ntime_limit_s = 2')
    task = change(task, "reference/train.py", 'print("trained")', new)
    with pytest.raises(ReBenchError, match=rf"^made_up: reference: the command python train.py 10 failed {reason}"):
        create_and_build(task, tmp_path / "workspace", "reference", profile="cpu")
    assert not (tmp_path / "workspace").exists()


def test_the_end_of_the_commands_output_is_shown(
    backend: Backend, made_up: TaskFolder, tmp_path: Path, change: Change
) -> None:
    del backend
    failing = 'print("step\\n" * 5000, "loss nan"); raise SystemExit(7)'
    task = change(made_up, "reference/train.py", 'print("trained")', failing)
    create_workspace(task, tmp_path / "workspace", "reference", profile="cpu")
    with pytest.raises(ReBenchError, match=r"\(exit status 7\):\n") as caught:
        build(task, tmp_path / "workspace", "reference", profile="cpu")
    assert str(caught.value).endswith("step\n loss nan\n")
    assert len(str(caught.value)) < 2200


def test_only_the_command_of_a_gpu_profile_needs_a_gpu(backend: Backend, made_up: TaskFolder, tmp_path: Path) -> None:
    del backend
    if any(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("this machine has a GPU")
    create_and_build(made_up, tmp_path / "agent", profile="gpu")
    with pytest.raises(UsageError, match="no GPU 0 here"):
        create_and_build(made_up, tmp_path / "workspace", "reference", profile="gpu")
    assert not (tmp_path / "workspace").exists()


def test_workspace_command_creates_and_builds(
    backend: Backend, made_up: TaskFolder, tmp_path: Path, re_bench: Command
) -> None:
    del backend
    laid_out = ("workspace", made_up.directory)
    done = re_bench(*laid_out, "here", "--with", "reference", "--profile", "cpu", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "task": "made_up", "profile": "cpu", "directory": str(tmp_path / "here"), "with": "reference",
    }  # fmt: skip
    assert (tmp_path / "here" / "number").read_text() == "10"
    assert json.loads((tmp_path / "here" / "seen.json").read_text())["data"] == "prepared for cpu"
    unknown = re_bench(*laid_out, "there", "--profile", "paper", cwd=tmp_path)
    assert (unknown.returncode, unknown.stderr) == (2, "re-bench: made_up has no profile 'paper'; it has: cpu, gpu\n")
    assert not (tmp_path / "there").exists()


def test_copied_files_are_not_shared_between_workspaces(made_up: TaskFolder, tmp_path: Path) -> None:
    template, workspace = tmp_path / "template", tmp_path / "workspace"
    (template / "deep").mkdir(parents=True)
    for path in (template / "data", template / "deep" / "program", template / "both"):
        path.write_text("prepared before")
    (template / "deep" / "program").chmod(0o755)

    def randomize(directory: Path) -> None:
        for name in ("own", "both"):
            (directory / name).write_text("of one workspace")

    create_workspace(made_up, workspace, "cheats/words", profile="cpu", template=template, randomize=randomize)
    assert not (tmp_path / "cache").exists()
    assert (workspace / "data").read_text() == "prepared before"
    assert os.access(workspace / "deep" / "program", os.X_OK)
    for path in (workspace / "data", workspace / "deep" / "program"):
        with path.open("r+") as file:
            file.write("changed ")
    assert [path.read_text() for path in (template / "data", template / "deep" / "program")] == ["prepared before"] * 2
    assert ((workspace / "own").read_text(), (workspace / "both").read_text()) == ("of one workspace", "baseline")


RANDOMIZE = """    randomized = True

    def randomize_workspace(self, setup: Setup[str], directory: Path, seed: int | None) -> None:
        import random
        draw = random.SystemRandom() if seed is None else random.Random(seed)
        (directory / "own").write_text(str(draw.getrandbits(128)))

    def score("""


def test_a_seed_makes_workspaces_reproducible(
    made_up: TaskFolder, tmp_path: Path, change: Callable[[TaskFolder, str, str, str], TaskFolder]
) -> None:
    change(made_up, "score.py", "    def score(", RANDOMIZE)
    drawn = {}
    for name, seed in {"one": 1 << 100, "same": 1 << 100, "other": 7, "free": None}.items():
        create_workspace(made_up, tmp_path / name, profile="cpu", seed=seed)
        drawn[name] = (tmp_path / name / "own").read_text()
    assert drawn["one"] == drawn["same"]
    assert len(set(drawn.values())) == 3


def test_a_workspace_is_not_writable_for_others_after_its_command(
    backend: Backend, made_up: TaskFolder, tmp_path: Path
) -> None:
    del backend
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    outside.mkdir()
    outside.chmod(0o777)
    (made_up.directory / "starter" / "deep").mkdir()
    (made_up.directory / "starter" / "notes").chmod(0o664)
    script = f"printf 1 > number; mkdir -m 777 deep/mine; ln -s {outside} link"
    (made_up.directory / "cheats" / "words" / "make.sh").write_text(script)
    create_and_build(made_up, workspace, "cheats/words", profile="cpu")
    assert (workspace / "deep" / "mine").is_dir()
    assert (workspace / "link").is_symlink()
    ours = [path for path in (workspace, *workspace.rglob("*")) if not path.is_symlink()]
    writable = {path: path.stat().st_mode & 0o022 for path in ours if path.stat().st_mode & 0o022}
    assert writable == {workspace / "notes": 0o020}
    assert stat.S_IMODE(outside.stat().st_mode) == 0o777


def test_a_failing_copy_is_an_error_and_leaves_no_workspace(made_up: TaskFolder, tmp_path: Path) -> None:
    (made_up.directory / "baseline" / "data").symlink_to("nowhere")
    with pytest.raises(
        ReBenchError, match=r"^made_up: cannot create a workspace with baseline in .*: .*No such file"
    ) as caught:
        create_workspace(made_up, tmp_path / "workspace", profile="cpu")
    assert not isinstance(caught.value, UsageError)
    assert not (tmp_path / "workspace").exists()
