from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import re_bench.scoring.score
from re_bench.data.files import import_file
from restricted_mlm import grading
from restricted_mlm.harness import exporter
from restricted_mlm.harness.restricted import allowed, graph

TASK = Path(__file__).parents[1]
score = import_file(TASK / "score.py", "restricted_mlm_score")
MASK = 64
TOKENS = np.random.default_rng(0).integers(0, MASK, 1_000).astype(np.uint16)
DRAW: dict[str, Any] = {"random": None, "mask_id": MASK, "share": 0.15}

MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(65, 65))
    def forward(self, tokens):
        x = self.table[tokens]
        return {result}

def get_trained_model():
    {before}
    return Model()
"""


@pytest.fixture
def scored(workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that scores a model by the real scorer with its sandboxes, on a small made-up text."""
    small = replace(score.PROFILES["cpu"], vocabulary=65, mask_id=MASK, batch=2, length=16, max_bytes=1 << 20)
    monkeypatch.setitem(score.PROFILES, "cpu", small)
    monkeypatch.setattr(score, "heldout_tokens", lambda _job, _name: TOKENS)

    def run(source: str) -> dict[str, Any]:
        (workspace / "model.py").write_text(source)
        with pytest.raises(SystemExit):
            re_bench.scoring.score.main(
                score.measure, TASK, ["--solution", str(workspace), "--profile", "cpu", "--json"]
            )
        outcome: dict[str, Any] = json.loads(capsys.readouterr().out)
        return outcome

    return run


def test_a_uniform_model_has_the_loss_of_a_uniform_guess(scored: Any) -> None:
    outcome = scored(MODEL.format(result="x", before=""))
    assert outcome["status"] == "valid", outcome
    details = outcome["details"]
    assert details["loss"] == pytest.approx(math.log(65), abs=1e-6)
    assert outcome["raw"] == pytest.approx(math.log(math.log(65) - details["floor"]), abs=1e-6)
    assert (details["parameters"], details["operators"]) == (65 * 65, 1)
    assert details["masked_positions"] == sum(batch.positions.size for batch in grading.batches(TOKENS, 2, 16, **DRAW))


@pytest.mark.parametrize(
    ("result", "before", "reason"),
    [
        ("x.exp()", "", r"^model\.py:11: aten\.exp\.default: this operator is not allowed"),
        ("x + 3e38 * (x + 3e38)", "", "logits that are not finite"),
        ("self.table[tokens + 1]", "", r"^model\.py:11: aten\.index\.Tensor: index 65 is out of bounds"),
        (
            "x",
            "import sys; sys.modules['restricted_mlm.harness.restricted.graph'].dump = lambda graph: '{}'",
            "the graph is malformed",
        ),
        (
            "x",
            "import sys; sys.modules['restricted_mlm.harness.exporter'].save = lambda tensors: b'1234'",
            "not safetensors",
        ),
    ],
    ids=["operator", "infinite", "index", "forged graph", "forged tensors"],
)
def test_what_is_refused_says_why(scored: Any, result: str, before: str, reason: str) -> None:
    outcome = scored(MODEL.format(result=result, before=before))
    assert outcome["status"] == "invalid", outcome
    assert re.search(reason, outcome["message"]), outcome["message"]


def test_a_missing_text_names_the_command(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RE_BENCH_CACHE", str(tmp_path / "nothing"))
    with pytest.raises(SystemExit) as stopped:
        re_bench.scoring.score.main(score.measure, TASK, ["--solution", str(workspace), "--profile", "cpu"])
    assert stopped.value.code == 2
    assert "run: re-bench prepare restricted_mlm --profile cpu" in capsys.readouterr().err


def test_the_loss_is_the_one_that_torch_computes() -> None:
    logits = np.random.default_rng(1).normal(0, 30, (50, 65)).astype(np.float32)
    labels = np.random.default_rng(2).integers(0, 65, 50)
    expected = torch.nn.functional.cross_entropy(torch.from_numpy(logits).double(), torch.from_numpy(labels))
    assert grading.cross_entropy(logits, labels).mean() == pytest.approx(float(expected), rel=1e-12)


def test_batches_are_the_same_every_time_and_hold_every_window_once() -> None:
    draw = {**DRAW, "share": 0.5}  # at 0.15, a batch as small as these may have no masked position, and is left out
    first, second = (list(grading.batches(TOKENS, 2, 16, **draw)) for _ in range(2))
    assert len(first) == grading.count(TOKENS, 2, 16, None) == 31
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one.tokens, other.tokens)
        assert np.array_equal(one.labels, other.labels)
    restored = []
    for batch in first:
        flat = batch.tokens.reshape(-1).copy()
        assert (flat[batch.positions] == MASK).all()
        flat[batch.positions] = batch.labels
        restored += [tuple(window) for window in flat.reshape(2, 16)]
    windows = [tuple(window) for window in TOKENS[: 62 * 16].reshape(62, 16)]
    assert sorted(restored) == sorted(windows)
    assert restored != windows


def test_the_share_of_masked_positions_is_as_asked() -> None:
    tokens = np.zeros(64 * 1024, np.uint16)
    masked = sum(batch.positions.size for batch in grading.batches(tokens, 8, 128, **DRAW))
    assert masked / tokens.size == pytest.approx(0.15, abs=0.005)


def test_random_batches_are_as_many_as_asked() -> None:
    batches = list(grading.batches(TOKENS, 2, 16, **{**DRAW, "random": 7}))
    assert len(batches) == grading.count(TOKENS, 2, 16, 7) == 7
    assert all(batch.tokens.shape == (2, 16) for batch in batches)


@pytest.mark.parametrize("path", sorted((TASK / "cheats").glob("*/model.py")), ids=lambda path: path.parent.name)
def test_cheats_say_what_they_try_and_what_stops_them(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith('"""Cheat: ')
    assert "\nStopped because " in text or "no better" in text


def test_cheats_that_reach_into_the_exporter_name_modules_that_it_has() -> None:
    """A cheat whose target is not found attacks nothing, and would be refused for a reason that shows nothing."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((TASK / "cheats").glob("*/model.py"))]
    targets = [set(re.findall(r'"(restricted_mlm\.[^"]+)"', text)) for text in texts if "sys.modules" in text]
    assert len(targets) == 6
    assert all(targets)
    assert set().union(*targets) == {allowed.__name__, graph.__name__, exporter.__name__}
