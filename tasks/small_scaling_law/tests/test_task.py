"""The task from its preparation to a score, with a tiny text and tiny budgets."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from re_bench.task import services
from re_bench.task.discovery import open_task
from re_bench.task.workspace import create_workspace
from small_scaling_law import bytes_text
from small_scaling_law.profiles import SCALES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from re_bench.task.discovery import TaskFolder

pytestmark = pytest.mark.integration

TASK = Path(__file__).parents[1]
FILES = {
    "answer.json", "batches.py", "data", "example_config.py", "experiment.py", "gpt.py", "ledger.py", "plot.py",
    "profile.json", "scales.py", "train.py", "training.py",
}  # fmt: skip


def python(directory: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python to its end."""
    command, environment = [sys.executable, *arguments], {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, env=environment, check=False)


def scored(directory: Path, profile: str = "paper", scorer: Path = TASK / "score.py") -> dict[str, Any]:
    done = python(directory, str(scorer), "--solution", ".", "--profile", profile, "--json")
    assert done.returncode in {0, 3}, done.stderr
    score: dict[str, Any] = json.loads(done.stdout)
    return score


def test_the_default_answer_scores_what_was_published(tmp_path: Path) -> None:
    create_workspace(open_task(TASK), tmp_path / "workspace", profile="paper")
    score = scored(tmp_path / "workspace")
    assert score["raw"] == pytest.approx(0.2356, abs=0.0005)
    assert score["reward"] == pytest.approx(0, abs=0.002)
    assert score["seconds"] <= 0.5
    assert score["message"] == "a valid answer"
    assert score["details"]["share_of_target"] == pytest.approx(0.755, abs=0.0005)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((8, 88_914, 3.6356), r"spends 1\.074e\+14 FLOPs, under 0\.5 times the target of 5e\+17 \(0\.000215 of it\)"),
        ((1000, 32_000, 3.7), r"spends 6\.04e\+17 FLOPs, over 1\.1 times the target"),
        ((10**12, 10**12, 3.7), "over 1.1 times the target"),
        ((1, 1, 3.7), "under 0.5 times the target"),
    ],
)
def test_an_answer_off_the_budget_is_invalid(tmp_path: Path, answer: tuple[int, int, float], reason: str) -> None:
    keys = ("n_embd", "max_iters", "loss_prediction")
    (tmp_path / "answer.json").write_text(json.dumps(dict(zip(keys, answer, strict=True))))
    score = scored(tmp_path)
    assert (score["status"], score["raw"]) == ("invalid", None)
    assert re.search(reason, score["message"])


def test_the_score_of_an_answer_is_nowhere_in_its_message(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text('{"n_embd": 546, "max_iters": 88914, "loss_prediction": 3.7356}')
    score = scored(tmp_path)
    assert score["raw"] == pytest.approx(0.9)
    assert not re.search(r"\d", score["message"])
    manifest = open_task(TASK).manifest
    assert (manifest.show_score, manifest.aggregation, manifest.direction) == (False, "last", "higher")


def test_scoring_does_not_import_torch(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text('{"n_embd": 546, "max_iters": 88914, "loss_prediction": 3.7356}')
    program = (
        "import runpy, sys\nsys.argv = ['score.py', '--solution', '.', '--profile', 'paper']\n"
        f"sys.path.insert(0, {str(TASK)!r})\n"
        f"try:\n    runpy.run_path({str(TASK / 'score.py')!r}, run_name='__main__')\n"
        "except SystemExit as end:\n    assert end.code == 0\nassert 'torch' not in sys.modules\n"
    )
    done = python(tmp_path, "-c", program)
    assert done.returncode == 0, done.stderr


def test_a_profile_without_a_truth_is_a_usage_error(tiny: TaskFolder, workspace: Path) -> None:
    done = python(workspace, str(tiny.scorer), "--solution", ".", "--profile", "cpu")
    assert done.returncode == 2
    assert "has no truth for profile cpu yet; run: python -m small_scaling_law.rebuild --profile cpu" in done.stderr


def test_a_workspace_has_what_the_instructions_say(template_workspace: Path) -> None:
    assert {path.name for path in template_workspace.iterdir()} == FILES
    instructions = (TASK / "instructions.md").read_text()
    assert all(name in instructions for name in FILES)
    assert {path.name for path in (template_workspace / "data").iterdir()} == {"train.bin", "valid.bin"}
    for path in template_workspace.glob("*.py"):
        assert not re.search(r"^\s*(from|import) re_bench", path.read_text(), re.MULTILINE), path.name


def test_the_instructions_say_the_numbers_of_the_table() -> None:
    instructions = (TASK / "instructions.md").read_text()
    for profile, scale in SCALES.items():
        row = next(line for line in instructions.splitlines() if line.startswith(f"| {profile} "))
        figures = [f"{scale.batch}, {scale.context}", f"{scale.target_flops:g}".replace("+", "")]
        if scale.experiments:
            figures += [f"{flops:g}".replace("+", "") for flops in vars(scale.experiments).values() if flops in
                        (scale.experiments.run_flops, scale.experiments.total_flops)]  # fmt: skip
        assert all(figure in row for figure in figures), (row, figures)


def test_bytes_are_the_text_and_are_split_by_documents(template_workspace: Path) -> None:
    words = bytes_text.vocabulary_bytes({"<|endoftext|>": 0, "the": 1, "Ġfox": 2, "Ġjumps": 3, "é": 4, "Ċ": 5, "Ā": 6})
    assert words == [b"\0", b"the", b" fox", b" jumps", b"\xe9", b"\n", b"\0"]
    assert bytes_text.spelled_out(np.array([1, 2, 5, 0], np.uint16), words) == b"the fox\n\0"
    train, valid = ((template_workspace / "data" / name).read_bytes() for name in ("train.bin", "valid.bin"))
    assert b" jumps" in train
    assert 0.01 < len(valid) / len(train) < 0.03
    documents = [
        f"document {index} says {index * 7919 % 10007} and then {index * 104729 % 10007}" for index in range(1000)
    ]
    documents[990] = documents[5]  # a copy, in a group that is for validation
    train, valid = bytes_text.divided(b"".join(text.encode() + b"\0" for text in documents))
    assert train.decode().split("\0")[:-1] == documents[:980]
    assert valid.decode().split("\0")[:-1] == documents[980:990] + documents[991:]


def test_an_experiment_is_charged_saved_and_repeated(workspace: Path) -> None:
    (workspace / "example_config.py").write_text("n_embd = 8\nmax_iters = 60\n")
    done = python(workspace, "train.py")
    assert done.returncode == 0, done.stderr
    assert re.search(r"run 1: n_embd 8, max_iters 60, 3\.539e\+07 FLOPs, loss \d\.\d+ after", done.stdout)
    assert python(workspace, "train.py", "--seed", "0").returncode == 0
    one, two = (json.loads((workspace / "runs" / f"00{number}.json").read_text()) for number in (1, 2))
    assert one["loss"] == two["loss"]
    assert one["curve"] == two["curve"]
    assert len(one["curve"]) == 60
    assert one["curve"][-1][1] < one["curve"][0][1]
    assert one["flops"] == 72 * 4 * 64 * 32 * 60
    ledger = [json.loads(line) for line in (workspace / "ledger.jsonl").read_text().splitlines()]
    assert [line["flops"] for line in ledger] == [one["flops"]] * 2


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("n_embd = 64\nmax_iters = 1000", "over the limit of 1e+08 a run"),
        ("n_embd = 10\nmax_iters = 10", "must be a multiple of the 4 heads, got 10"),
        ("n_embd = 8.0\nmax_iters = 10", "must be integers, got 8.0"),
        ("n_embd = 8\nmax_iters = -10", "must be positive"),
        (f"n_embd = 8\nmax_iters = {10**150}", "must be less than 2^64"),
        ("n_embd = 48\nmax_iters = 1", "the run costs 1.132e+08 FLOPs, over the limit of 1e+08 a run"),
        ("n_embd = 8", "mine.py must set max_iters"),
    ],
)
def test_an_experiment_that_may_not_be_is_refused_and_free(workspace: Path, config: str, reason: str) -> None:
    (workspace / "mine.py").write_text(config)
    done = python(workspace, "train.py", "mine.py")
    assert done.returncode == 1
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (workspace / "ledger.jsonl").exists()


def test_all_experiments_together_are_limited_and_a_lying_ledger_is_noticed(workspace: Path) -> None:
    cheat = (TASK / "cheats" / "lying_ledger" / "make.py").read_text()
    (workspace / "make.py").write_text(cheat)
    done = python(workspace, "make.py")
    assert done.returncode == 0, done.stderr
    (workspace / "mine.py").write_text("n_embd = 8\nmax_iters = 1\n")
    done = python(workspace, "train.py", "mine.py")
    assert "claims another number or cost than its run has" in done.stderr
    (workspace / "ledger.jsonl").write_text("{}\n")
    done = python(workspace, "train.py", "mine.py")
    assert "ledger.jsonl, line 1 is no run ('n_embd'); the ledger is not to be edited" in done.stderr


def test_plots_are_drawn_where_matplotlib_is(workspace: Path) -> None:
    pytest.importorskip("matplotlib")
    assert "there are no experiments yet" in python(workspace, "plot.py").stderr
    (workspace / "runs").mkdir()
    run = {"n_embd": 8, "flops": 1e7, "loss": 3.0, "curve": [[1, 5.0], [2, 4.0]]}
    (workspace / "runs" / "001.json").write_text(json.dumps(run))
    (workspace / "runs" / "002.json").write_text(json.dumps({**run, "loss": None, "curve": []}))
    done = python(workspace, "plot.py", "seen.png")
    assert (done.returncode, (workspace / "seen.png").read_bytes()[:4]) == (0, b"\x89PNG"), done.stderr


def test_a_sweep_is_resumed_and_says_how_to_repeat_a_run(tiny: TaskFolder, tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom re_bench.runs.executor import open_executor\n"
        "from small_scaling_law import sweep\nfrom small_scaling_law.profiles import SCALES\n"
        "planned = sweep.jobs(SCALES['cpu'], [sweep.Row(0.001, (4, 8)), sweep.Row(0.002, (4,), (8,))], 5)\n"
        "out, count = Path(sys.argv[1]), int(sys.argv[2])\n"
        "with open_executor() as executor:\n"
        "    print(len(list(sweep.sweep('cpu', planned[:count], out, executor))))\n"
    )
    out = tmp_path / "runs.jsonl"
    done = python(tiny.directory, "-c", program, str(out), "1")
    assert done.stdout == "1\n", done.stderr
    with out.open("a") as file:
        file.write('{"half a li')
    done = python(tiny.directory, "-c", program, str(out), "2")
    assert done.stdout == "1\n", done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len({(line["n_embd"], line["max_iters"], line["seed"]) for line in lines}) == 2
    keys = {"share", "seed", "flops", "loss", "curve", "settings", "code", "text", "fixed", "hardware", "versions"}
    assert keys <= set(lines[0])


def test_a_sweep_that_is_stopped_leaves_nothing_running(tiny: TaskFolder, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "small_scaling_law.rebuild", "--profile", "cpu", "--workers", "2"]
    command = [*program, "--out", str(tmp_path / "cpu.json")]
    with subprocess.Popen(command, cwd=tiny.directory, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stdout.read() is not None  # ends only when no worker holds it any more
    assert (tmp_path / "cpu-runs.jsonl").read_text().endswith("\n")


@pytest.fixture
def meter(tiny: TaskFolder, tmp_path: Path) -> Iterator[Path]:
    """Return the socket of a meter, whose trusted workspace is ``state``."""
    directory = tmp_path / "meter"
    directory.mkdir()
    address, state = directory / "socket", directory / "state"
    command = [sys.executable, *services.command("meter", tiny, "cpu", str(address), str(state))]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("listening" in line for line in process.stderr)
        yield address
        process.terminate()
        assert process.wait(20) == 143
    assert not address.exists()


def test_the_meter_makes_and_counts_runs_outside(meter: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RE_BENCH_EXPERIMENTS", str(meter))
    (workspace / "example_config.py").write_text("n_embd = 8\nmax_iters = 60\n")
    (workspace / "experiment.py").write_text("raise SystemExit('changed by the agent')")
    done = [python(workspace, "train.py", "--seed", "3") for _repeat in range(2)]
    assert [process.returncode for process in done] == [0, 0], done[0].stderr
    one, two = (json.loads((workspace / "runs" / f"00{number}.json").read_text()) for number in (1, 2))
    assert one["loss"] == two["loss"]
    assert not (workspace / "ledger.jsonl").exists()
    (workspace / "example_config.py").write_text("n_embd = 64\nmax_iters = 1000\n")
    done = [python(workspace, "train.py")]
    assert (done[0].returncode, done[0].stderr.count("\n")) == (1, 1)
    assert "over the limit of 1e+08 a run" in done[0].stderr
    ledger = [json.loads(line) for line in (meter.parent / "state" / "ledger.jsonl").read_text().splitlines()]
    assert [line["flops"] for line in ledger] == [one["flops"]] * 2


def asked(meter: Path, line: bytes) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(meter))
        connection.sendall(line)
        answer: dict[str, Any] = json.loads(connection.makefile().readline())
    return answer


def test_a_run_of_few_steps_is_charged_the_measurement_of_its_loss_and_a_seed_too_large_nothing(meter: Path) -> None:
    assert asked(meter, b"[8, 1, %d]\n" % 2**64)["refused"] == "n_embd, max_iters and seed must be less than 2^64"
    assert not (meter.parent / "state" / "ledger.jsonl").exists()
    outcome = asked(meter, b"[8, 1, %d]\n" % (2**64 - 1))
    assert outcome["flops"] == 24 * 4 * 64 * 64 * 8 > 72 * 4 * 64 * 32  # by its training
    (line,) = (meter.parent / "state" / "ledger.jsonl").read_text().splitlines()
    assert json.loads(line)["flops"] == outcome["flops"]


def test_the_instructions_say_from_which_step_on_training_costs_more_than_its_measurement() -> None:
    instructions = (TASK / "instructions.md").read_text()
    for profile in ("cpu", "gpu"):
        scale = SCALES[profile]
        steps = next(n for n in range(1, 200) if scale.experiment_flops(8, n) == scale.flops(8, n))
        row = next(line for line in instructions.splitlines() if line.startswith(f"| {profile} "))
        assert row.endswith(f"| {steps} steps |")


def test_the_meter_refuses_what_is_no_request(meter: Path) -> None:
    for line in (b"[8, 60]\n", b"[8, 60, true]\n", b"[8, 60, 0.5]\n", b"\xff\n", b"[" * 300, b"{}\n", b"\n"):
        assert "a request is a line of JSON" in asked(meter, line)["refused"], line


def test_a_meter_that_is_not_there_is_said(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RE_BENCH_EXPERIMENTS", str(workspace / "none"))
    assert "none cannot be reached: No such file" in python(workspace, "train.py").stderr


EXPLORE = """
import json, math, sys
import predict
slope = float(sys.argv[1])
def one_run(job):
    x = math.log(job[0] / 16)
    return {"n_embd": job[0], "seconds": 0, "loss": 2 + slope * x + x * x}
class Pool:
    map = map
predict.one_run = one_run
losses = predict.explore(Pool, 1e8, 16, 3)
print(json.dumps({width: len(found) for width, found in sorted(losses.items())}))
print(predict.cheapest_best(losses))
"""


@pytest.mark.parametrize(
    ("slope", "runs", "guess"),
    [
        (0.0, {"12": 1, "16": 3, "24": 1}, 16),
        (0.3, {"12": 1, "16": 3, "24": 1}, 16),  # 12 is best, but by less than the noise
        (0.4, {"12": 1, "16": 3, "24": 1}, 12),  # 12 is best, but not clearly
        (0.8, {"8": 1, "12": 1, "16": 3, "24": 1}, 12),
        (-0.8, {"12": 1, "16": 3, "24": 1, "32": 1}, 24),
    ],
)
def test_the_reference_repeats_the_middle_width_and_adds_narrow_ones_only_if_clearly_better(
    tiny: TaskFolder, tmp_path: Path, slope: float, runs: dict[str, int], guess: int
) -> None:
    create_workspace(tiny, tmp_path / "workspace", "reference", profile="cpu")
    done = python(tmp_path / "workspace", "-c", EXPLORE, str(slope))
    assert done.returncode == 0, done.stderr
    found, best = map(json.loads, done.stdout.splitlines()[-2:])
    assert (found, best) == (runs, guess)


@pytest.mark.slow  # nox -s score runs the real one
def test_the_reference_keeps_the_budget_and_answers(tiny: TaskFolder, tmp_path: Path) -> None:
    create_workspace(tiny, tmp_path / "workspace", "reference", profile="cpu")
    started = time.monotonic()
    done = python(tmp_path / "workspace", "predict.py")
    assert done.returncode == 0, done.stderr
    answer = json.loads((tmp_path / "workspace" / "answer.json").read_text())
    assert set(answer) == {"n_embd", "max_iters", "loss_prediction"}
    spent = [json.loads(line)["flops"] for line in (tmp_path / "workspace" / "ledger.jsonl").read_text().splitlines()]
    assert max(spent) <= 1e8
    assert sum(spent) <= 2e9
    assert time.monotonic() - started < 60
    report = json.loads((tmp_path / "workspace" / "report.json").read_text())
    assert len(report["losses"]) == 3
    assert all(len(report[name]["percentiles_5_50_95"]) == 3 for name in ("n_embd", "loss_prediction"))
