"""The micro-benchmarks' kernels do the work that the model says they do; what they measure needs a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from re_bench.data.files import import_file
from triton_cumsum.harness import fast_interpreter
from triton_cumsum.harness.memory_counter import Counter
from triton_cumsum.harness.work_counter import counted

measure_device = import_file(Path(__file__).parents[1] / "tools" / "measure_device.py", "triton_cumsum_measure_device")
BLOCK = 64
LENGTH = 4 * BLOCK


def counts(x: Any, y: Any, number: int, rounds: int, *, many: bool) -> dict[str, float]:
    fast_interpreter.install()
    counter = Counter("k", [x, y])
    with counted(counter):
        if many:
            measure_device.launch_many(x, y, LENGTH // BLOCK, BLOCK, 4, number, rounds)
        else:
            measure_device.launch_one(x, y, BLOCK, 4, number, rounds)
    return counter.counts()


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("kind", measure_device.KINDS)
def test_each_round_adds_its_words_of_one_kind(kind: str, *, many: bool) -> None:
    work = measure_device.KINDS[kind]
    x, y = torch.arange(LENGTH, dtype=torch.int32), torch.zeros(LENGTH, dtype=torch.int32)
    fewer, more = (counts(x, y, work.number, rounds, many=many) for rounds in (1, 3))
    assert more[kind] - fewer[kind] == 2 * work.words * LENGTH
    waits = 2 * LENGTH // BLOCK if work.waits else 0
    assert more["waits"] - fewer["waits"] == waits
    others = {"bytes", "scanned", "reduced", "exchanged"} - {kind}
    assert all(more[other] == fewer[other] for other in others)


def test_no_rounds_are_a_copy() -> None:
    x, y = torch.arange(LENGTH, dtype=torch.int32), torch.zeros(LENGTH, dtype=torch.int32)
    assert counts(x, y, 1, 0, many=True)["bytes"] == 8 * LENGTH
    assert torch.equal(x, y)
