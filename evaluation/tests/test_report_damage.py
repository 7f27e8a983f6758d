"""Test that any damage of result files leaves a valid report."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from evaluation_factory import TASKS, Shape, make_evaluation, make_validation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from re_bench.errors import UsageError
from re_bench_evaluation.report.data import to_json
from re_bench_evaluation.report.details import Room
from re_bench_evaluation.report.read import read_report
from re_bench_evaluation.report.terminal import as_text

pytestmark = pytest.mark.integration

ODD: tuple[Any, ...] = (
    None, True, -1, 10**400, float("nan"), float("-inf"), "", "\ud800", "\x1b[2J", "../../..", [], ["a"], {}, {"a": []},
    "9999-12-31T23:59:59+00:00", 1e308,
)  # fmt: skip
FILES = (
    "evaluation.json", "scan.jsonl", "runs/*/run.json", "runs/*/waits.jsonl", "runs/*/agent/trace.jsonl",
    "runs/*/server/sessions/*/session.json", "runs/*/server/sessions/*/attempts.jsonl",
    "runs/*/server/sessions/*/transcript.jsonl", "validation.json",
)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("made") / "e"
    make_evaluation(directory, shape=Shape((("mlab", "m"),), TASKS[:1], runs=1, attempts=3))
    make_validation(directory / "validation.json", TASKS[:1])
    head = {"v": 1, "time": "t", "checks": ["jumps"], "left_out": [], "judge": None}
    finding = {"check": "jumps", "severity": "info", "text": "t", "run": "r", "attempt": 1, "evidence": {"a": 1}}
    (directory / "scan.jsonl").write_text(f"{json.dumps(head)}\n{json.dumps(finding)}\n")
    return directory


def read(made: Path, name: str, content: bytes) -> None:
    """Read a copy in which a file has another content, and make all that a report can be."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(shutil.copytree(made, Path(scratch) / "e"))
        next(copy.glob(name)).write_bytes(content)
        try:
            data = read_report([copy, copy / "validation.json"], room=Room())
        except UsageError:
            return
        json.dumps(to_json(data), allow_nan=False).encode()
        as_text(data).encode()


slow = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@slow
@given(st.data())
def test_unexpected_values(made: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject) -> None:
    monkeypatch.setenv("RE_BENCH_CACHE", str(made.parent / "cache"))
    name = data.draw(st.sampled_from(FILES))
    path = next(made.glob(name))
    lines = [
        json.loads(line) for line in ([path.read_text()] if path.suffix == ".json" else path.read_text().splitlines())
    ]
    node: Any = lines
    while True:
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
        if not isinstance(node[key], dict | list) or not node[key] or data.draw(st.integers(0, 3)) == 0:
            break
        node = node[key]
    node[key] = data.draw(st.sampled_from(ODD))
    read(made, name, "".join(f"{json.dumps(line)}\n" for line in lines).encode())


@slow
@given(st.data())
def test_truncated_and_changed_bytes(made: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject) -> None:
    monkeypatch.setenv("RE_BENCH_CACHE", str(made.parent / "cache"))
    name = data.draw(st.sampled_from(FILES))
    content = bytearray(next(made.glob(name)).read_bytes())
    for _change in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    read(made, name, bytes(content[: data.draw(st.integers(0, len(content)))]))
