from __future__ import annotations

from typing import Any

import numpy as np
import operators
import pytest
import torch
from codec import RefusedError
from counting import Counter, traffic

BASE = 4096


def addresses(*places: int) -> Any:
    return np.array([BASE + place for place in places], dtype=np.uint64)


def test_neighbours_move_exactly_their_bytes() -> None:
    assert traffic(addresses(*range(4, 404, 4)), 4) == 400
    assert traffic(addresses(12), 4) == 4


def test_anything_else_moves_whole_sectors() -> None:
    assert traffic(addresses(0, 64, 128), 4) == 96
    assert traffic(addresses(*[8] * 100), 4) == 32
    assert traffic(addresses(*range(396, -4, -4)), 4) == 416


def test_masked_lanes_cost_nothing_and_are_not_checked() -> None:
    counter = Counter("k", [torch.zeros(4, dtype=torch.int32)])
    counter.access(addresses(0, 4), np.array([False, False]), 4)
    assert counter.bytes == 0


def test_the_largest_program_is_kept() -> None:
    tensor = torch.zeros(64, dtype=torch.int32)
    counter = Counter("k", [tensor])
    for program, size in enumerate((3, 7, 5)):
        counter.start((program, 0, 0))
        pointers = tensor.data_ptr() + 4 * np.arange(size, dtype=np.uint64)
        counter.access(pointers, np.ones(size, dtype=bool), 4)
    assert (counter.bytes, counter.program_bytes) == (60, 28)


@pytest.mark.parametrize("offset", [-4, 13, 16, 2**40, 2**63])
def test_accesses_outside_of_the_tensors_are_refused(offset: int) -> None:
    tensor = torch.zeros(4, dtype=torch.int32)
    counter = Counter("k", [tensor])
    pointers = np.array([(tensor.data_ptr() + offset) % 2**64, tensor.data_ptr()], dtype=np.uint64)
    with pytest.raises(IndexError, match="kernel k, program None: 1 of 2 active lanes"):
        counter.access(pointers, np.ones(2, dtype=bool), 4)


def test_accesses_may_span_several_tensors() -> None:
    first, second = torch.zeros(4, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    counter = Counter("k", [first, second])
    pointers = np.array([first.data_ptr(), second.data_ptr()], dtype=np.uint64)
    counter.access(pointers, np.ones(2, dtype=bool), 4)
    assert counter.bytes == 64


def test_masks_of_another_size_are_refused() -> None:
    with pytest.raises(RefusedError, match="do not go together"):
        Counter("k", []).access(addresses(0, 4), np.ones(3, dtype=bool), 4)


def cost_of(name: str, *args: Any, **kwargs: Any) -> tuple[int, int]:
    operator, rule = operators.resolve(name)
    operators.check_arguments(name, rule, [*args, *kwargs.values()])
    return operators.cost(operator, rule, args, kwargs, operator(*args, **kwargs))


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
        ("cumsum.default", (X, 0), {}, 12_000),
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
    assert cost_of(f"aten::{name}", *args, **kwargs)[0] == expected


def test_products_count_their_arithmetic() -> None:
    assert cost_of("aten::mm.default", FLOATS, FLOATS.T)[1] == 2 * 10 * 20 * 10
    with pytest.raises(RefusedError, match="integers"):
        cost_of("aten::mm.default", X.view(10, 100), X.view(100, 10))


@pytest.mark.parametrize(
    "name", ["slice.Tensor", "view.default", "expand.default", "select.int", "empty.memory_format"]
)
def test_views_and_allocations_are_free(name: str) -> None:
    assert operators.resolve(f"aten::{name}")[1] == "free"


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
        operators.resolve(name)


def test_every_name_in_the_table_exists() -> None:
    assert all(hasattr(torch.ops.aten, name) for name in operators.RULES)
