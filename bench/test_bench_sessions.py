"""How long what people wait for takes: one round each, for they are long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

TOP = Path(__file__).resolve().parents[1]
PYTEST = ["-m", "pytest", "-q", "-p", "no:benchmark", "-n", "2"]


def once(benchmark: BenchmarkFixture, *arguments: str) -> None:
    command = [sys.executable, *arguments]
    benchmark.pedantic(subprocess.run, (command,), {"check": True, "cwd": TOP}, rounds=1)  # type: ignore[no-untyped-call]


@pytest.mark.benchmark(group="whole sessions")
@pytest.mark.timeout(600)
def test_score_triton_cumsum(benchmark: BenchmarkFixture) -> None:
    once(benchmark, "-m", "re_bench.cli", "validate", "triton_cumsum", "--profile", "cpu")


@pytest.mark.benchmark(group="whole sessions")
@pytest.mark.timeout(600)
def test_all_tests(benchmark: BenchmarkFixture) -> None:
    once(benchmark, *PYTEST)


@pytest.mark.benchmark(group="whole sessions")
@pytest.mark.timeout(600)
def test_tests_of_the_core(benchmark: BenchmarkFixture) -> None:
    once(benchmark, *PYTEST, "common/tests")
