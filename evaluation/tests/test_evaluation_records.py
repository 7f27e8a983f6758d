"""Records of evaluations on disk: what is written is read again, and damage is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from re_bench.errors import ReBenchError
from re_bench.records import EvaluationRecord, RunRecord, TaskRecord, run_directories

if TYPE_CHECKING:
    from pathlib import Path

RUN = RunRecord(run="a.m.t.0", agent="a", model="m", task="t", task_id="ai_rd_t", profile="cpu", seed=0, reward=0.5)
TASK = TaskRecord(
    name="t", id="ai_rd_t", title="T", version=1, profile="cpu", direction="lower", aggregation="min", unit="s"
)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    evaluation = EvaluationRecord(name="e", created="2026-01-01T00:00:00+00:00", plan={"runs": 3}, tasks=(TASK,),
                                  versions={"python": "3"}, hardware="x, 2 cores")  # fmt: skip
    evaluation.save(tmp_path)
    assert EvaluationRecord.load(tmp_path) == evaluation
    for name in ("b", "a"):
        directory = tmp_path / "runs" / name
        directory.mkdir(parents=True)
        RUN.save(directory)
    (tmp_path / "runs" / "empty").mkdir()
    assert [directory.name for directory in run_directories(tmp_path)] == ["a", "b"]
    assert RunRecord.load(tmp_path / "runs" / "a") == RUN


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{}", "run: Field required"),
        (b"\xff", "the file: Invalid JSON"),
        (RUN.model_dump_json().replace('"v":1', '"v":2').encode(), "v: Input should be 1"),
    ],
)
def test_a_damaged_record_is_named(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(ReBenchError, match="it cannot be read: No such file"):
        RunRecord.load(tmp_path)
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(ReBenchError, match=reason):
        RunRecord.load(tmp_path)
