"""Programs that wait for each other, and instructions that do not write whole sectors, are modelled as slow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from re_bench.data.files import import_file
from triton_cumsum import grading
from triton_cumsum.harness import coalescing
from triton_cumsum.modelled import cost

TASK = Path(__file__).parents[1]
N = 1 << 17


@pytest.fixture
def step(solution_in: Any, replayed: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(TASK / "tools")
    sources = import_file(TASK / "tools" / "variants.py", "triton_cumsum_variants").variants()
    sources["reference"] = (TASK / "reference" / "solution.py").read_text()

    def counted(name: str) -> cost.Step:
        generator = np.random.default_rng(0)
        _, trace = solution_in(sources[name]).play(grading.uniform(generator, N), record=True)
        x = grading.uniform(generator, N)
        y, steps = replayed(trace, x)
        assert np.array_equal(y, grading.prefix_sum(x))
        return cost.parse_steps(steps)[-1]

    return counted


@pytest.mark.parametrize(("name", "milliseconds"), [("chain", 10.4), ("chain_of_atomics", 11.3)])
def test_each_block_of_a_chain_takes_a_hop(step: Any, name: str, milliseconds: float) -> None:
    chain = step(name)
    assert chain.span_at(12_207) * 1e3 == pytest.approx(milliseconds, rel=0.25)


def test_looking_back_does_not_wait_for_each_block(step: Any) -> None:
    reference = step("reference")
    assert reference.span_slope < 0.1e-6


def test_rows_apart_that_are_joined_are_not_stored_together(step: Any) -> None:
    apart, together = step("split_join"), step("reference")
    assert apart.partial == pytest.approx(N, rel=0.01)
    assert together.partial < N / 1000
    assert apart.work_seconds(cost.H200) > 3 * together.work_seconds(cost.H200)


def places(*strides: int) -> Any:
    """Return addresses of blocks of two along each axis but the first, of 64, and the last, of four."""
    lengths = [64, *[2] * (len(strides) - 2), 4]
    grids = np.meshgrid(*(4 * stride * np.arange(n) for n, stride in zip(lengths, strides, strict=True)), indexing="ij")
    return np.asarray(sum(grids), dtype=np.uint64)


@pytest.mark.parametrize(
    ("pointers", "opaque", "partial", "lines"),
    [
        (places(4, 1), False, 0, 8),
        (places(4, 1), True, 256, 32),
        (places(32, 1), False, 64, 64),
        (places(32, 16, 8, 4, 1), False, 512, 512),
    ],
)
def test_instructions_follow_the_layout(pointers: Any, opaque: bool, partial: int, lines: int) -> None:
    layouts = coalescing.instructions(pointers, np.ones(pointers.shape, dtype=bool), 4, 1, opaque=opaque)
    assert max(coalescing.partial_sectors(*layout) for layout in layouts) == partial
    assert max(coalescing.lines(addresses, active) for addresses, active, _ in layouts) == lines
