"""The shipped reference: its weights are those of the record, and its training begins as the record says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.nn.functional import rms_norm

from re_bench.data.files import import_file, sha256_of
from re_bench.lm.training import fast_bfloat16
from re_bench.text.prepare import prepare
from restricted_mlm import build
from restricted_mlm.profiles import PROFILES

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench.text import PreparedText

pytestmark = pytest.mark.integration

STEPS = 2
ROUNDING = 0.005
"""Nats by which a loss may differ between an H200 and a CPU, both in bfloat16 or the CPU in float32."""

model = import_file(build.DIRECTORY / "model.py", "restricted_mlm_reference_model")


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(build.record_path("cpu").read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="module")
def text() -> PreparedText:
    return prepare(PROFILES["cpu"].text).text


def test_the_record_is_of_the_shipped_weights_this_text_and_this_recipe(
    record: dict[str, Any], text: PreparedText
) -> None:
    weights = build.DIRECTORY / "cpu.safetensors"
    assert sha256_of(weights) == record["seeds"]["0"]["sha256"]
    assert weights.stat().st_size <= 10e6
    assert record["text"]["files"] == text.manifest["files"]
    assert build.Recipe(**record["recipe"]) == build.RECIPES["cpu"]
    assert len(record["seeds"]) >= 3  # the spread is of at least so many


def test_a_reference_that_is_not_trained_yet_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "profile.json").write_text('{"profile": "gpu"}', encoding="utf-8")
    monkeypatch.setattr(model, "HERE", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"gpu\.safetensors: not trained yet; run .* --profile gpu"):
        model.get_trained_model()


@pytest.fixture
def quick_muon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have torch's Muon compute in single precision on CPUs that multiply in bfloat16 a hundred times slower."""
    if not fast_bfloat16(torch.device("cpu")):
        monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.float)


@pytest.mark.usefixtures("quick_muon")
def test_training_begins_with_the_losses_of_the_record(record: dict[str, Any], text: PreparedText) -> None:
    _model, figures = build.trained("cpu", text.train, 0, steps=STEPS, log=lambda _line: None)
    seeds = record["seeds"]
    same, other = (pytest.approx(seeds[seed]["first_losses"][:STEPS], abs=ROUNDING) for seed in ("0", "1"))
    assert figures["first_losses"] == same
    assert figures["first_losses"] != other


@pytest.mark.parametrize("size", [1e-3, 1.0, 300.0])
def test_allowed_operations_compute_what_torch_does(size: float) -> None:
    x = torch.randn(2, 3, 128, generator=torch.Generator().manual_seed(0)) * size
    torch.testing.assert_close(
        model.Allowed().normalised(x), rms_norm(x, (128,), eps=model.EPSILON), rtol=1e-4, atol=1e-6
    )
    torch.testing.assert_close(model.Allowed().softmax(x), torch.softmax(x, -1), rtol=1e-3, atol=1e-4)


def test_masked_positions_alone_have_the_logits_that_all_positions_have() -> None:
    sizes = model.Sizes(64, "S1 A M S2 | A M", 1)
    made = model.ReferenceModel(33, 16, sizes)
    with torch.no_grad():
        for weight in made.parameters():
            weight.normal_(std=0.1, generator=torch.Generator().manual_seed(0))
        tokens, positions = torch.randint(0, 33, (2, 16)), torch.tensor([[1, 5, 0], [15, 7, 8]])
        some = made.trunk(made.embedding(tokens), positions)
        torch.testing.assert_close(some, model.taken(made(tokens), positions))
