"""Test validation: independent solutions, verdicts, repeats and concurrency."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from re_bench.runs.job_resources import default_jobs
from re_bench.runs.validate import default_repeats
from re_bench.testing import run_command, run_process

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from re_bench.sandbox.spec import Backend
    from re_bench.task.discovery import TaskFolder

    Change = Callable[[TaskFolder, str, str, str], TaskFolder]

pytestmark = pytest.mark.integration

SPOILS = """
description = "changes what it finds"
expect = "no_better"
make = {command = ["bash", "make.sh"], time_limit_s = 20}
"""
DRAW = 'import secrets\n        (directory / "drawn").write_text(secrets.token_hex())\n        for name in ("data"'
MEET = """
        import os, time
        from pathlib import Path
        mine = Path(os.environ["RE_BENCH_CACHE"]) / "met" / job.staged.sha256
        mine.parent.mkdir(exist_ok=True)
        mine.touch()
        for _ in range(1200):
            if len(list(mine.parent.iterdir())) > 1: break
            time.sleep(0.05)
        else:
            raise KeyError("no other scoring came")
        try:
"""


def validated(task: TaskFolder, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Validate profile cpu; return the exit status, the rows by solution, and stderr."""
    done = run_command("validate", task.directory, "--profile", "cpu", "--json", *arguments)
    reports = json.loads(done.stdout)["reports"] if done.stdout else [{"rows": []}]
    return done.returncode, {row["variant"]: row for row in reports[0]["rows"]}, done.stderr


@pytest.fixture
def randomized(made_up: TaskFolder, backend: Backend, change: Change) -> TaskFolder:
    """Return a task with a random prepared file that the scorer reports and two cheats change."""
    del backend
    for name in ("spoils", "spoils_too"):
        cheat = made_up.directory / "cheats" / name
        cheat.mkdir()
        (cheat / "make.sh").write_text("set -e; test -s data; printf x >> drawn; rm data; printf 0 > number\n")
        (cheat / "cheat.toml").write_text(SPOILS)
    change(made_up, "score.py", 'for name in ("data"', DRAW)
    return change(made_up, "score.py", '"fine")', '"fine", {"drawn": (job.submission / "drawn").read_text()})')


def test_cheats_get_separate_copies_of_the_same_files(randomized: TaskFolder) -> None:
    status, rows, stderr = validated(randomized, "--repeats", "2", "--jobs", "2", "--verbose")
    assert status == 0, stderr
    rewards = {name: [score["reward"] for score in row["scores"]] for name, row in rows.items()}
    assert rewards == {
        "baseline": [0.0] * 2, "reference": [1.0] * 2, "cheats/spoils": [0.0], "cheats/spoils_too": [0.0],
        "cheats/words": [None],
    }  # fmt: skip
    drawn = {name: [score["details"].get("drawn") for score in row["scores"]] for name, row in rows.items()}
    (spoilt,) = drawn["cheats/spoils"]
    assert drawn["cheats/spoils_too"] == [spoilt]
    assert spoilt.endswith("x")
    assert len({spoilt[:-1], *drawn["baseline"], *drawn["reference"]}) == 5
    assert stderr.count("making what cpu needs") == 1
    assert stderr.count("made_up: reference: finished in ") == 2
    assert stderr.count("made_up: cheats/words: finished in ") == 1


def test_failing_solutions_do_not_stop_the_others(randomized: TaskFolder) -> None:
    for file in ("reference/train.py", "cheats/spoils/make.sh"):
        (randomized.directory / file).write_text(f"# {'long ' * 100}\nthis is no program in either language")
    status, rows, stderr = validated(randomized)
    assert status == 1
    outcomes = {name: (row["scores"][0]["status"], row["passed"]) for name, row in rows.items()}
    assert outcomes == {
        "baseline": ("valid", True), "reference": ("error", False), "cheats/spoils": ("error", False),
        "cheats/spoils_too": ("valid", True), "cheats/words": ("invalid", True),
    }  # fmt: skip
    for variant in ("reference", "cheats/spoils"):
        score, verdict = rows[variant]["scores"][0], rows[variant]["verdict"]
        assert (score["raw"], score["reward"], score["profile"]) == (None, None, "cpu")
        assert score["message"].startswith(f"made_up: {variant}: the command ")
        assert "this is no program" in score["message"] or "this: command not found" in score["message"]
        assert f"made_up: {variant}: the command " in verdict
        assert len(verdict) < 200
        assert score["message"] in stderr
    assert "Traceback (most recent call last)" not in stderr


def test_a_cheat_is_compared_with_the_solution_it_is_derived_from(randomized: TaskFolder, change: Change) -> None:
    change(randomized, "cheats/spoils/cheat.toml", "expect", 'derived_from = "tools/honest"\nexpect')
    (randomized.directory / "tools" / "honest").mkdir(parents=True)
    (randomized.directory / "tools" / "honest" / "number").write_text("6")
    (randomized.directory / "tools" / "honest" / "drawn").write_text("")
    cheat = randomized.directory / "cheats" / "spoils" / "make.sh"
    outcomes = []
    for number in ("6.1", "6.2"):
        cheat.write_text(f"test -s base/number && printf {number} > number")
        status, rows, stderr = validated(randomized, "--only", "spoils")
        outcomes.append((status, rows["cheats/spoils"]["passed"], rows["cheats/spoils"]["verdict"]))
        assert rows["tools/honest"]["scores"][0]["reward"] == pytest.approx(0.6), stderr
    assert outcomes == [(0, True, "no better than the tools/honest"), (1, False, "scores above the tools/honest")]
    shutil.rmtree(randomized.directory / "tools")
    cheat.write_text("printf 6 > number")
    status, rows, _stderr = validated(randomized, "--only", "spoils")
    assert (status, rows["cheats/spoils"]["verdict"]) == (
        1,
        "must be compared with the tools/honest, which has no reward",
    )


LUCK = """
        import os
        from pathlib import Path
        said = Path(os.environ["RE_BENCH_CACHE"]) / "scored"
        lucky = (job.submission / "lucky").is_file()
        if lucky:
            with said.open("a") as file: file.write("x")
        luck = LUCKY if lucky and said.read_text() == "x" else 0
        try:
"""


@pytest.mark.parametrize(
    ("luck", "parallel", "scored", "passed"),
    [(1, False, 3, True), (4, False, 3, False), (4, True, 1, False), (0.1, False, 1, True)],
)
def test_a_measured_cheat_above_its_base_is_scored_again(
    randomized: TaskFolder, change: Change, luck: float, scored: int, *, parallel: bool, passed: bool
) -> None:
    change(randomized, "score.py", "        try:\n", LUCK.replace("LUCKY", str(luck)).lstrip("\n"))
    change(randomized, "score.py", "RawScore(float(", "RawScore(luck + float(")
    if parallel:
        change(randomized, "task.toml", 'device = "cpu"', 'device = "cpu"\nparallel = true')
    make = randomized.directory / "cheats" / "spoils" / "make.sh"
    make.write_text("printf 0 > number; touch lucky")
    _status, rows, stderr = validated(randomized, "--only", "spoils", "--only", "spoils_too")
    assert [len(rows[name]["scores"]) for name in ("cheats/spoils", "baseline")] == [scored, scored], stderr
    assert len(rows["cheats/spoils_too"]["scores"]) == 1
    assert rows["cheats/spoils"]["passed"] == passed


def test_cheats_fail_if_the_baseline_has_no_score(
    randomized: TaskFolder, change: Change, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # the crashed scorer leaves its copy behind
    (randomized.directory / "baseline" / "number").write_text("")
    change(
        randomized,
        "score.py",
        "        except ValueError:",
        "        except ValueError:\n            import os; os._exit(9)",
    )
    status, rows, _stderr = validated(randomized, "--only", "baseline", "--only", "reference", "--only", "spoils")
    assert status == 1
    assert rows["baseline"]["scores"][0]["status"] == "error"
    assert "the scorer exited with 9" in rows["baseline"]["verdict"]
    assert rows["reference"]["passed"]
    assert rows["cheats/spoils"]["verdict"] == "must be compared with the baseline, which has no reward"


def test_validation_aborts_without_a_sandbox(made_up: TaskFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(made_up.directory))
    done = run_process("validate", made_up.directory, "--profile", "cpu", "--json")
    assert (done.returncode, list(json.loads(done.stdout))) == (2, ["error"])
    told = "re-bench: made_up cannot run here: sandbox: prlimit, setpriv not found"
    assert done.stderr.splitlines()[-1].startswith(told)


def test_parallel_profiles_are_scored_concurrently(made_up: TaskFolder, backend: Backend, change: Change) -> None:
    del backend
    assert default_jobs(made_up, "cpu") == 1
    task = change(made_up, "task.toml", 'device = "cpu"', 'device = "cpu"\nparallel = true')
    cores = os.sched_getaffinity(0)
    assert default_jobs(task, "cpu") == len(cores)
    on_gpu = change(task, "task.toml", 'device = "cuda"', 'device = "cuda"\nparallel = true')
    assert default_jobs(on_gpu, "gpu") == min(3, max(1, len(cores) // 4))
    if len(cores) == 1:
        pytest.skip("one core")
    manifest = task.directory / "task.toml"
    manifest.write_text(manifest.read_text().replace("time_limit_s = 30", "time_limit_s = 100"))
    change(task, "score.py", "        try:\n", MEET)
    change(task, "score.py", '"fine")', '"fine", {"cores": sorted(os.sched_getaffinity(0))})')
    status, rows, stderr = validated(task)
    assert (status, list(rows)) == (0, ["baseline", "reference", "cheats/words"]), stderr
    used = [rows[name]["scores"][0]["details"]["cores"] for name in ("baseline", "reference")]
    assert [len(numbers) for numbers in used] == [1, 1]
    assert {core for numbers in used for core in numbers} <= cores
    _status, rows, _stderr = validated(task, "--jobs", str(len(cores) + 1), "--only", "baseline")
    assert rows["baseline"]["scores"][0]["details"]["cores"]


def test_the_references_command_runs_once_by_default(made_up: TaskFolder, change: Change) -> None:
    assert default_repeats(made_up) == 1
    shutil.rmtree(made_up.directory / "reference")
    command = '[reference]\ncommand = ["python", "train.py", "10"]\ntime_limit_s = 30\n'
    assert default_repeats(change(made_up, "task.toml", command, f"{command}repeats = 2\n")) == 2
    assert default_repeats(change(made_up, "task.toml", f"{command}repeats = 2\n", "")) == 3


def test_a_refused_cheat_fails_if_no_better_is_expected(made_up: TaskFolder, backend: Backend, change: Change) -> None:
    del backend
    change(made_up, "cheats/words/cheat.toml", '"invalid"', '"no_better"')
    change(made_up, "cheats/words/cheat.toml", "reason = ", "# reason = ")
    status, rows, _stderr = validated(made_up, "--only", "words")
    assert status == 1
    assert "refused, but no_better is expected without a reason" in rows["cheats/words"]["verdict"]


@pytest.mark.parametrize(
    ("only", "scored"),
    [
        ("--only baseline --only reference", ["baseline", "reference"]),
        ("--only cheats", ["baseline", "cheats/spoils", "cheats/spoils_too", "cheats/words"]),
        ("--only words", ["cheats/words"]),
    ],
)
def test_only_scores_the_named_and_the_bases_of_cheats(randomized: TaskFolder, only: str, scored: list[str]) -> None:
    status, rows, stderr = validated(randomized, "--repeats", "1", *only.split())
    assert (status, sorted(rows)) == (0, scored), stderr


def test_a_refused_cheat_that_becomes_valid_is_compared_with_its_base(randomized: TaskFolder) -> None:
    (randomized.directory / "cheats" / "words" / "make.sh").write_text("printf 6 > number")
    status, rows, stderr = validated(randomized, "--only", "words")
    assert (status, sorted(rows)) == (1, ["baseline", "cheats/words"]), stderr
    assert rows["cheats/words"]["verdict"] == "scores above the baseline"


def test_only_names_the_solution_that_is_missing(made_up: TaskFolder) -> None:
    done = run_command("validate", made_up.directory, "--only", "wrods", "--profile", "cpu")
    assert (done.returncode, done.stderr) == (2, "re-bench: made_up has no solution 'wrods' (did you mean words?)\n")
