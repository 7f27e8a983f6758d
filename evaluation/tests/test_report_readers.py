"""Test readers for formats of other packages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from evaluation_factory import Shape, make_evaluation

from re_bench.cli.main import main
from re_bench.errors import UsageError
from re_bench_evaluation.report import sources
from re_bench_evaluation.report.data import Problem
from re_bench_evaluation.report.details import Room
from re_bench_evaluation.report.read import read_report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(eq=False)
class Reader:
    """Reads files ``*.other`` as evaluations, except ``bad.other``."""

    asked: list[Sequence[Path]] = field(default_factory=list)

    def reads(self, path: Path) -> bool:
        return path.suffix == ".other"

    def write(self, paths: Sequence[Path], directory: Path) -> list[Problem]:
        self.asked.append(paths)
        (directory / ".own").mkdir()
        for path in paths:
            if path.stem != "bad":
                make_evaluation(directory / path.stem, shape=Shape(runs=1, attempts=2))
                (directory / path.stem / "runs" / "stray").mkdir()
        return [Problem(str(path), "it is bad") for path in paths if path.stem == "bad"]


@dataclass
class Entry:
    """An entry point."""

    name: str
    value: object

    def load(self) -> object:
        if self.value is None:
            raise ImportError
        return self.value


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    reader = Reader()
    entries = [Entry("broken", None), Entry("other", reader)]
    monkeypatch.setattr(sources, "entry_points", lambda group: entries if group == sources.GROUP else [])
    return reader


def files(directory: Path, *names: str) -> list[Path]:
    for name in names:
        (directory / name).write_text("something")
    return [directory / name for name in names]


def test_paths_of_a_format_are_read_together(reader: Reader, tmp_path: Path) -> None:
    (one,) = files(tmp_path, "one.other")
    data = read_report([one], room=Room())
    assert [evaluation.path for evaluation in data.evaluations] == [str(one)]
    assert [problem.path for problem in data.problems] == [f"{one}/runs/stray"]
    assert data.runs
    assert all(run.path.startswith(f"{one}/runs/") and run.attempts[-1].steps for run in data.runs)

    both = files(tmp_path, "one.other", "two.other")
    assert [evaluation.path for evaluation in read_report(both).evaluations] == [str(tmp_path)] * 2
    assert reader.asked == [[one], both]


def test_problems_of_readers(reader: Reader, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, good = files(tmp_path, "bad.other", "good.other")
    assert main(["report", str(bad), str(good)]) == 1
    assert "it is bad" in capsys.readouterr().out
    assert len(reader.asked) == 1
    with pytest.raises(UsageError, match="it is bad"):
        read_report([bad])
