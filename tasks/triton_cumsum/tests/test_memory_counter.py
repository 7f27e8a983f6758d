from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from re_bench.guest.refused import RefusedError

from triton_cumsum.harness import torch_operators
from triton_cumsum.harness.memory_counter import BoundsChecker, Counter
from triton_cumsum.harness.sector_cache import CACHED, SECTOR

WORDS = 64 * CACHED
TENSOR = torch.zeros(WORDS, dtype=torch.int32)


def addresses(*places: int) -> Any:
    return TENSOR.data_ptr() + np.array(places, dtype=np.uint64)


def row(start: int, count: int, step: int = 4) -> Any:
    return addresses(*range(start, start + step * count, step))


def counted(*accesses: Any, kind: str = "load", size: int = 4, **options: Any) -> dict[str, float]:
    counter = Counter("k", [TENSOR])
    for pointers in accesses:
        getattr(counter, kind)(pointers, np.ones(pointers.size, dtype=bool), size, **options)
    return counter.counts()


def test_stores_of_neighbours_move_exactly_their_bytes() -> None:
    assert counted(row(4, 100), kind="store")["bytes"] == 400
    assert counted(addresses(12), kind="store")["bytes"] == 4


def test_all_else_moves_whole_sectors() -> None:
    for kind in ("store", "load"):
        assert counted(addresses(0, 64, 128), kind=kind)["bytes"] == 96
        assert counted(addresses(*[8] * 100), kind=kind)["bytes"] == 32
        assert counted(addresses(*range(396, -4, -4)), kind=kind)["bytes"] == 416
        assert counted(addresses(0, 64, 4, 68, 0), kind=kind)["bytes"] == 64
    assert counted(row(4, 100))["bytes"] == 416


def test_a_sector_loaded_before_comes_from_the_cache() -> None:
    lines = [128 * line + place for line in range(8) for place in range(0, 16, 4)]
    halves = [addresses(*lines), addresses(*(place + 16 for place in lines))]
    counts = counted(*halves)
    assert counts["bytes"] == 8 * SECTOR
    assert counts["exchanged"] == 8 * SECTOR // 4
    assert counted(*halves, cached=False)["bytes"] == 16 * SECTOR
    assert counted(*halves, kind="store")["bytes"] == 16 * SECTOR


def test_the_cache_is_small() -> None:
    inside, beyond = row(0, 8 * CACHED), row(0, 8 * CACHED + 8)
    assert counted(inside, inside)["bytes"] == inside.size * 4
    assert counted(beyond, row(0, 8))["bytes"] == beyond.size * 4 + SECTOR
    every, other = row(0, CACHED + 1, SECTOR), row(0, CACHED, SECTOR)
    assert counted(every, other[:1])["bytes"] == (CACHED + 2) * SECTOR
    assert counted(other, other[:1])["bytes"] == CACHED * SECTOR


def test_loads_again_do_not_keep_a_sector_for_ever() -> None:
    first, half = row(0, 8), CACHED // 2
    others = [row(SECTOR * (1 + start * half), 8 * half) for start in range(4)]
    passes = [pointers for other in others for pointers in (other, first)]
    assert counted(first, *passes)["bytes"] == SECTOR * (1 + 4 * half + 2)


def test_each_program_starts_with_an_empty_cache() -> None:
    counter = Counter("k", [TENSOR])
    for program in range(3):
        counter.start((program, 0, 0))
        counter.load(row(0, 8), np.ones(8, dtype=bool), 4)
    assert counter.counts()["bytes"] == 3 * SECTOR
    assert counter.counts()["programs"] == 3


@pytest.mark.parametrize("seed", range(20))
def test_loads_agree_with_a_plain_cache(seed: int) -> None:
    generator = np.random.default_rng(seed)
    others = [torch.zeros(100, dtype=torch.int32), torch.zeros(7, dtype=torch.int32)]
    tensors = [TENSOR[: 8 * 50], *others]
    counter, bytes_moved = Counter("k", [TENSOR, *others]), 0
    seen: set[tuple[int, int]] = set()
    for _ in range(30):
        tensor = int(generator.integers(3))
        places = generator.integers(0, tensors[tensor].numel(), generator.integers(1, 40))
        if generator.integers(2):
            places = np.arange(places.min(), places.max() + 1)
        pointers = np.uint64(tensors[tensor].data_ptr()) + 4 * places.astype(np.uint64)
        counter.load(pointers, np.ones(pointers.size, dtype=bool), 4)
        sectors = {(tensor, place // 8) for place in places.tolist()}
        bytes_moved += SECTOR * len(sectors - seen)
        seen |= sectors
    assert counter.counts()["bytes"] == bytes_moved


def test_atomics_are_not_joined() -> None:
    counts = counted(row(0, 8), kind="atomic")
    assert counts["bytes"] == 8 * 2 * SECTOR
    assert counts["waits"] == 1


def test_masked_lanes_cost_nothing_and_are_not_checked() -> None:
    counter = Counter("k", [torch.zeros(4, dtype=torch.int32)])
    for access in (counter.load, counter.store, counter.atomic):
        access(addresses(0, 4), np.array([False, False]), 4)
    assert counter.counts()["bytes"] == 0


def test_the_largest_program_is_kept() -> None:
    counter = Counter("k", [TENSOR])
    for program, size in enumerate((3, 7, 5)):
        counter.start((program, 0, 0))
        counter.store(row(0, size), np.ones(size, dtype=bool), 4)
    counts = counter.counts()
    assert (counts["bytes"], counts["program_bytes"]) == (60, 28)
    assert counter.counts() == counts


@pytest.mark.parametrize("offset", [-4, 13, 16, 2**40, 2**63])
@pytest.mark.parametrize("kind", ["load", "store", "atomic"])
@pytest.mark.parametrize("made", [Counter, BoundsChecker])
def test_accesses_outside_of_the_tensors_are_refused(made: Any, kind: str, offset: int) -> None:
    tensor = torch.zeros(4, dtype=torch.int32)
    pointers = np.array([(tensor.data_ptr() + offset) % 2**64, tensor.data_ptr()], dtype=np.uint64)
    with pytest.raises(IndexError, match="kernel k, program None: 1 of 2 active lanes"):
        getattr(made("k", [tensor]), kind)(pointers, np.ones(2, dtype=bool), 4)


def test_accesses_may_span_several_tensors() -> None:
    first, second = torch.zeros(4, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    counter = Counter("k", [first, second])
    pointers = np.array([first.data_ptr(), second.data_ptr()], dtype=np.uint64)
    for access in (counter.load, counter.store):
        access(pointers, np.ones(2, dtype=bool), 4)
    assert counter.counts()["bytes"] == 128


def test_masks_of_another_size_are_refused() -> None:
    with pytest.raises(RefusedError, match="do not go together"):
        Counter("k", []).load(addresses(0, 4), np.ones(3, dtype=bool), 4)


def cost_of(name: str, *args: Any, **kwargs: Any) -> dict[str, int]:
    operator, rule = torch_operators.resolve(name)
    torch_operators.check_arguments(name, rule, [*args, *kwargs.values()])
    return torch_operators.cost(operator, rule, args, kwargs, operator(*args, **kwargs))


X = torch.zeros(1000, dtype=torch.int32)
FLOATS = torch.zeros(10, 20)


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "expected"),
    [
        ("add.Tensor", (X, X), {}, 12_000),
        ("add_.Tensor", (X.clone(), 1), {}, 8000),
        ("gt.Scalar", (X, 0), {}, 5000),
        ("add.out", (X, X), {"out": X.clone()}, 12_000),
        ("add.Tensor", (X, X[:1].expand(1000)), {}, 8004),
        ("clone.default", (X[::2],), {}, 6000),
        ("clone.default", (X[::100],), {}, 360),
        ("copy_.default", (X.clone(), X), {}, 8000),
        ("fill_.Scalar", (X.clone(), 1), {}, 4000),
        ("zeros.default", ([1000],), {"dtype": torch.int32}, 4000),
        ("sum.default", (X,), {}, 4008),
        ("cat.default", ([X, X],), {}, 16_000),
        ("index_select.default", (X, 0, torch.zeros(10, dtype=torch.int64)), {}, 160),
        ("index.Tensor", (X, [torch.zeros(10, dtype=torch.int64)]), {}, 160),
        ("_local_scalar_dense.default", (X[0],), {}, 4),
        ("where.self", (X > 0, X, X), {}, 13_000),
        ("max.dim", (X, 0), {}, 4012),
        ("mm.default", (FLOATS, FLOATS.T), {}, 800 + 800 + 400),
    ],
)
def test_bytes_of_operators(name: str, args: Any, kwargs: Any, expected: int) -> None:
    assert cost_of(f"aten::{name}", *args, **kwargs)["bytes"] == expected


def test_scans_run_at_their_own_rate_after_a_conversion() -> None:
    assert cost_of("aten::cumsum.default", X, 0) == {"bytes": 12_000, "scan_bytes": 16_000}
    assert cost_of("aten::cumsum.default", X > 0, 0) == {"bytes": 9000, "scan_bytes": 16_000}
    assert cost_of("aten::cumsum.default", X, 0, dtype=torch.int32) == {"bytes": 0, "scan_bytes": 8000}
    assert cost_of("aten::cumprod.default", X.long(), 0) == {"bytes": 0, "scan_bytes": 16_000}


def test_products_count_their_arithmetic() -> None:
    assert cost_of("aten::mm.default", FLOATS, FLOATS.T)["flops"] == 2 * 10 * 20 * 10
    with pytest.raises(RefusedError, match="integers"):
        cost_of("aten::mm.default", X.view(10, 100), X.view(100, 10))


@pytest.mark.parametrize(
    "name", ["slice.Tensor", "view.default", "expand.default", "select.int", "empty.memory_format"]
)
def test_views_and_allocations_are_free(name: str) -> None:
    assert torch_operators.resolve(f"aten::{name}")[1] == "free"


@pytest.mark.parametrize(
    "name",
    [
        "aten::from_file.default",
        "aten::set_.source_Storage",
        "aten::resize_.default",
        "aten::as_strided_.default",
        "aten::_reshape_alias.default",
        "aten::nonzero.default",
        "aten::rand_like.default",
        "aten::sort.default",
        "aten::add.nothing",
        "aten::nothing.default",
        "aten::add",
        "prims::add.default",
        "aten::__init__.default",
        None,
    ],
)
def test_unknown_operators_are_refused(name: Any) -> None:
    with pytest.raises(RefusedError, match="cannot model"):
        torch_operators.resolve(name)


def test_every_name_in_the_table_exists() -> None:
    assert all(hasattr(torch.ops.aten, name) for name in torch_operators.RULES)
