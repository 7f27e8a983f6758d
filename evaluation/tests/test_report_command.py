"""Test the command ``re-bench report``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from evaluation_factory import TASKS, Shape, make_evaluation, make_validation

from re_bench.cli.main import main
from re_bench_evaluation.report.read import read_report
from re_bench_evaluation.report.terminal import as_text

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "\x1b]0;title\x07\x1b[31m[bold red]x[/]\r\n\u202eabc"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RE_BENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    shape = Shape((("mlab", "model-a"),), TASKS[3:], runs=2, messages=(HOSTILE,), traces=False, submissions=False)
    return make_evaluation(tmp_path / "first", shape=shape)


def test_tables(evaluation: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(evaluation), str(make_validation(tmp_path / "v.json"))]) == 0
    text = capsys.readouterr().out
    for part in (
        "leaderboard, profile cpu", "delta/cpu/v1: The task delta", "* raw scores are modelled, not measured",
        "a stand-in replaces the model", "first mlab model-a: only 2 runs", "passed, 3 of 3", "0.01 / 0.02",
    ):  # fmt: skip
        assert part in text


def test_wide_tables_are_split(evaluation: Path) -> None:
    lines = as_text(read_report([evaluation]), 80).splitlines()
    rules = [
        number for number, line in enumerate(lines) if line.startswith("----") and "evaluation" in lines[number - 1]
    ]
    assert max(len(lines[number]) for number in rules) <= 80
    headers = [line.split() for line in lines if "evaluation" in line]
    assert len(headers) > 3
    assert all(header[:3] == ["evaluation", "agent", "model"] for header in headers)
    assert all("model-a" in lines[number + 2] for number, line in enumerate(lines) if "evaluation" in line)


def test_json(evaluation: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--json", str(evaluation)]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["version"] == 1
    assert len(values["runs"]) == 4
    assert values["cells"][0]["curves"]
    assert values["budgets"]


def test_unreadable_path_is_a_problem(evaluation: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(evaluation), str(tmp_path / "gone")]) == 1
    text = capsys.readouterr().out
    assert "leaderboard" in text
    assert "problems: 1" in text
    assert f"{tmp_path}/gone" in text


def test_untrusted_text_is_escaped(evaluation: Path) -> None:
    data = read_report([evaluation])
    assert any(HOSTILE in refusal.message for cell in data.cells for refusal in cell.refusals)
    for width in (40, 200, None):
        text = as_text(data, width)
        assert not {"\x07", "\r", "\u202e", "\x1b"} & set(text)
    assert "[bold red]x[/]" in as_text(data)
