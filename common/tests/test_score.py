"""What a scorer says of itself is always one JSON object that every reader accepts."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from re_bench.scoring.score import Score

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = """
id = "small"
title = "Small"
description = "A number"
version = 1
direction = "higher"
aggregation = "max"
unit = "points"
submission = ["number", "numbers/first"]
[profiles.cpu]
description = "small"
device = "cpu"
time_limit_s = 30
[profiles.cpu.anchors]
starting = 1.0
reference = 3.0
source = { kind = "published", where = "here" }
"""
SCORER = """
from pathlib import Path
from re_bench.errors import InvalidSubmissionError
from re_bench.scoring.score import Measured, main
def measure(job):
    {body}
main(measure, Path(__file__).parent)
"""


def score(tmp_path: Path, body: str, *arguments: str) -> tuple[int, str, str]:
    task, submission = tmp_path / "small", tmp_path / "submission"
    task.mkdir()
    (task / "task.toml").write_text(MANIFEST)
    (task / "score.py").write_text(SCORER.format(body=body))
    submission.mkdir()
    (submission / "number").write_text("2")
    command = [sys.executable, str(task / "score.py"), "--solution", str(submission), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def result(stdout: str) -> dict[str, Any]:
    value = json.loads(stdout, parse_constant=pytest.fail)
    assert isinstance(value, dict)
    return value


def test_a_valid_score_has_raw_and_reward(tmp_path: Path) -> None:
    code, stdout, _stderr = score(tmp_path, "return Measured(2.0, 'fine', {'more': [1]})", "--json")
    values = result(stdout)
    assert (code, values["status"], values["raw"], values["reward"], values["message"]) == (
        0,
        "valid",
        2.0,
        0.5,
        "fine",
    )
    assert values["details"]["more"] == [1]
    assert len(values["details"]["submission"]) == 64


@pytest.mark.parametrize(
    ("body", "code", "status", "text"),
    [
        ("raise InvalidSubmissionError('no good')", 3, "invalid", "no good"),
        ("return Measured(float('nan'), '')", 3, "invalid", "the raw score is nan"),
        ("raise InvalidSubmissionError('\\x1b[31mred\\udc80' + 'x' * 9999)", 3, "invalid", "\\x1b[31mred\\udc80xxx"),
        ("raise KeyError('lost')", 1, "error", "the scorer failed: KeyError: 'lost'"),
        ("return Measured(1.0, '', {'x': float('inf')})", 1, "error", "the scorer failed: ValueError"),
        ("return Measured(1.0, '', {'x': object()})", 1, "error", "the scorer failed: TypeError"),
    ],
)
def test_everything_else_has_neither(tmp_path: Path, body: str, code: int, status: str, text: str) -> None:
    ended, stdout, _stderr = score(tmp_path, body, "--json")
    values = result(stdout)
    assert (ended, values["status"], values["raw"], values["reward"]) == (code, status, None, None)
    assert text in values["message"]
    assert len(values["message"]) < 5000


def test_for_people_the_same_is_said_in_words(tmp_path: Path) -> None:
    code, stdout, _stderr = score(tmp_path, "return Measured(2.0, 'fine')")
    assert code == 0
    assert "raw 2 points, reward 0.5000\nfine\n" in stdout


def test_sandbox_and_submission_are_details_in_json_alone() -> None:
    typed = Score("t", "cpu", "valid", 1.0, None, "fine", {"more": 1}, 0.5, sandbox="none", submission="ab")
    values = typed.to_dict()
    assert list(values) == ["task", "profile", "status", "raw", "reward", "message", "details", "seconds"]
    assert values["details"] == {"sandbox": "none", "submission": "ab", "more": 1}
    assert Score.from_dict(values) == typed
    assert Score.from_dict(json.loads(typed.to_json())) == typed


def test_a_score_that_is_an_error_has_no_submission() -> None:
    failed = Score.error("t", "cpu", "no idea", seconds=1.23456)
    assert (failed.status, failed.raw, failed.reward, failed.seconds) == ("error", None, None, 1.235)
    assert failed.to_dict()["details"] == {}
    with pytest.raises(TypeError):
        Score.from_dict(failed.to_dict() | {"colour": "red"})
    with pytest.raises(KeyError):
        Score.from_dict({"task": "t"})
