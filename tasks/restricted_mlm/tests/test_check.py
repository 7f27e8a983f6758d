from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

MODEL = """
import torch
from torch import nn

calls = 0

def act(x):
    return {act}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(65, 8), nn.Linear(8, {outputs})
    def forward(self, tokens):
        return self.head(act(self.embedding(tokens)))

def get_trained_model():
    return Model()
"""


def slow(*values: str) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


def checked(workspace: Path, *, act: str = "torch.relu(x)", outputs: int = 65) -> tuple[int, str]:
    (workspace / "other.py").write_text(MODEL.format(act=act, outputs=outputs))
    command = [sys.executable, str(workspace / "check.py"), str(workspace / "other.py")]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_an_allowed_model_is_ok(workspace: Path) -> None:
    status, text = checked(workspace)
    assert status == 0
    assert re.match(r"ok: 3 operators, 1,105 parameters, 0\.0 MB, [0-9.e+]+ operations for a batch \(", text), text


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        ("x.tanh()", "refused: other.py:8: aten.tanh.default: this operator is not allowed\n"),
        slow("x / 2", "refused: other.py:8: aten.div.Tensor: this operator is not allowed (multiply by a constant"),
        slow("x.flatten(1)", "refused: forward cannot be written down|refused: other.py:"),
        slow("x * float(torch.rand(1))", "refused: "),
        ("x.repeat(1, 1, 10_000)[..., :8]", "refused: other.py:8: aten.repeat.default: its result would have shape"),
    ],
    ids=["tanh", "division", "shape", "random", "large"],
)
def test_others_are_refused_by_operator_and_line(workspace: Path, act: str, reason: str) -> None:
    status, text = checked(workspace, act=act)
    assert status == 1, text
    assert any(text.startswith(start) for start in reason.split("|")), text
    assert "Traceback" not in text


def test_the_shape_of_the_logits_is_checked(workspace: Path) -> None:
    assert checked(workspace, outputs=64) == (
        1,
        "refused: forward must return float32 logits of shape [2, 16, 65], got float32 of shape [2, 16, 64]\n",
    )


def test_a_model_that_remembers_its_calls_is_refused(workspace: Path) -> None:
    act = "[globals().__setitem__('calls', calls + 1), x * calls][1]"
    status, text = checked(workspace, act=act)
    assert status == 1
    assert "forward must depend only on its input" in text
