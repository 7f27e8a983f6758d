from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from re_bench.data.files import import_file

if TYPE_CHECKING:
    from collections.abc import Iterator
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


@pytest.fixture
def checked(workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    """Return a function that runs the workspace's ``check.py`` in this process, which has torch already."""
    before = {*sys.modules}
    monkeypatch.setattr(sys, "path", [str(workspace), *sys.path])
    check = import_file(workspace / "check.py", "restricted_mlm_check")

    def run(*, act: str = "torch.relu(x)", outputs: int = 65) -> tuple[int, str]:
        (workspace / "other.py").write_text(MODEL.format(act=act, outputs=outputs))
        monkeypatch.setattr(sys, "argv", ["check.py", str(workspace / "other.py")])
        return check.main(), capsys.readouterr().out

    yield run
    for name in {*sys.modules} - before:
        if name.partition(".")[0] in {"other", "restricted"}:
            del sys.modules[name]


def test_an_allowed_model_is_ok(workspace: Path) -> None:
    (workspace / "other.py").write_text(MODEL.format(act="torch.relu(x)", outputs=65))
    command = [sys.executable, str(workspace / "check.py"), str(workspace / "other.py")]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    status, text = done.returncode, done.stdout
    assert status == 0, done.stderr
    assert re.match(r"ok: 3 operators, 1,105 parameters, 0\.0 MB, [0-9.e+]+ operations for a batch \(", text), text


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        ("x.tanh()", "refused: other.py:8: aten.tanh.default: this operator is not allowed\n"),
        ("x / 2", "refused: other.py:8: aten.div.Tensor: this operator is not allowed (multiply by a constant"),
        ("x.flatten(1)", "refused: forward cannot be written down|refused: other.py:"),
        ("x * float(torch.rand(1))", "refused: "),
        ("x.repeat(1, 1, 10_000)[..., :8]", "refused: other.py:8: aten.repeat.default: its result would have shape"),
    ],
    ids=["tanh", "division", "shape", "random", "large"],
)
def test_others_are_refused_by_operator_and_line(checked: Any, act: str, reason: str) -> None:
    status, text = checked(act=act)
    assert status == 1, text
    assert any(text.startswith(start) for start in reason.split("|")), text
    assert "Traceback" not in text


def test_the_shape_of_the_logits_is_checked(checked: Any) -> None:
    assert checked(outputs=64) == (
        1,
        "refused: forward must return float32 logits of shape [2, 16, 65], got float32 of shape [2, 16, 64]\n",
    )


def test_a_model_that_remembers_its_calls_is_refused(checked: Any) -> None:
    act = "[globals().__setitem__('calls', calls + 1), x * calls][1]"
    status, text = checked(act=act)
    assert status == 1
    assert "forward must depend only on its input" in text
