"""Runs submissions through the harnesses in this process, in Triton's interpreter."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

os.environ["TRITON_INTERPRET"] = "1"

TASK = Path(__file__).parents[1]


class Solution:
    """A submission in this process: plays, records and replays it through the harnesses' own functions."""

    def __init__(self, directory: Path) -> None:
        from triton_cumsum.harness import cpu_runner  # noqa: PLC0415 - imports torch, which only some tests need

        self.runner = cpu_runner
        path = sys.path.copy()
        sys.modules.pop("solution", None)
        try:
            cpu_runner.load({"directory": str(directory)}, [], [])
        finally:
            sys.path[:] = path
            sys.modules.pop("solution", None)

    def play(self, x: Any, *, record: bool = False) -> tuple[Any, Any]:
        y = x.copy()
        y[:] = -77
        reply = self.runner.run({"length": x.size, "record": record}, [view(x)], [view(y)])
        return y, json.loads(reply["trace"]) if record else None


def view(array: Any) -> memoryview:
    return memoryview(array).cast("B")


def replay(trace: Any, x: Any) -> tuple[Any, list[dict[str, Any]]]:
    from triton_cumsum.harness import meter  # noqa: PLC0415 - as above

    y = x.copy()
    y[:] = -77
    reply = meter.replay({"trace": json.dumps(trace), "length": x.size}, [view(x)], [view(y)])
    return y, reply["steps"]


@pytest.fixture
def solution_in(tmp_path: Path) -> Any:
    def make(source: str) -> Solution:
        (tmp_path / "solution.py").write_text(source)
        return Solution(tmp_path)

    return make


@pytest.fixture
def solution_of() -> Any:
    return lambda name: Solution(TASK / name)


@pytest.fixture
def replayed() -> Any:
    return replay
