"""What kernels compute is counted, and a scan by hand costs no less than one that Triton knows."""

# ruff: noqa: ARG001 - all ways to scan take the same arguments

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime import interpreter

from triton_cumsum.harness import fast_interpreter, work_counter
from triton_cumsum.harness.memory_counter import Counter
from triton_cumsum.modelled import cost

N = 1024


@triton.jit  # type: ignore[untyped-decorator] # triton is not followed by the type checker
def combine(  # noqa: PLR0917 - two summaries
    parity_a: Any, even_a: Any, odd_a: Any, parity_b: Any, even_b: Any, odd_b: Any
) -> Any:
    even = even_a + tl.where(parity_a != 0, odd_b, even_b)
    return parity_a ^ parity_b, even, odd_a + tl.where(parity_a != 0, even_b, odd_b)


@triton.jit  # type: ignore[untyped-decorator]
def by_cumsum(v: Any, s: Any, N: tl.constexpr) -> Any:  # noqa: N803
    return tl.cumsum(v, 0)


@triton.jit  # type: ignore[untyped-decorator]
def by_tuples(v: Any, s: Any, N: tl.constexpr) -> Any:  # noqa: N803
    return tl.associative_scan((v, v, v), 0, combine)[1]


@triton.jit  # type: ignore[untyped-decorator]
def by_rows(v: Any, s: Any, N: tl.constexpr) -> Any:  # noqa: N803
    rows = tl.cumsum(tl.reshape(v, (N // 4, 4)), 1)
    sums = tl.sum(tl.reshape(v, (N // 4, 4)), 1)
    return tl.reshape(rows + (tl.cumsum(sums, 0) - sums)[:, None], (N,))


@triton.jit  # type: ignore[untyped-decorator]
def by_gathering(v: Any, s: Any, N: tl.constexpr) -> Any:  # noqa: N803
    lane = tl.arange(0, N)
    distance = 1
    while distance < N:
        before = tl.gather(v, tl.maximum(lane - distance, 0), 0)
        v += tl.where(lane >= distance, before, 0)
        distance *= 2
    return v


@triton.jit  # type: ignore[untyped-decorator]
def by_halves(v: Any, s: Any, N: tl.constexpr) -> Any:  # noqa: N803
    for level in tl.static_range(10):
        pairs = tl.reshape(v, (N >> (level + 1), 2, 1 << level))
        left, right = tl.split(tl.permute(pairs, (0, 2, 1)))
        last = tl.arange(0, 1 << level)[None, :] == (1 << level) - 1
        right += tl.sum(tl.where(last, left, 0), 1)[:, None]
        v = tl.reshape(tl.permute(tl.join(left, right), (0, 2, 1)), (N,))
    return v


@triton.jit  # type: ignore[untyped-decorator]
def by_pairs(v: Any, s: Any, N: tl.constexpr) -> Any:  # noqa: N803
    lane = tl.arange(0, N)
    return tl.sum(tl.where(lane[None, :] <= lane[:, None], v[None, :], 0), 1)


@triton.jit  # type: ignore[untyped-decorator]
def by_memory(v: Any, s: Any, N: tl.constexpr) -> Any:  # noqa: N803
    lane = tl.arange(0, N)
    distance = 1
    while distance < N:
        tl.store(s + lane, v)
        v += tl.load(s + lane - distance, mask=lane >= distance, other=0)
        distance *= 2
    return v


@triton.jit  # type: ignore[untyped-decorator]
def by_atomics(v: Any, s: Any, N: tl.constexpr) -> Any:  # noqa: N803
    return tl.atomic_add(s + 0 * tl.arange(0, N), v) + v


@triton.jit  # type: ignore[untyped-decorator]
def by_products(v: Any, s: Any, N: tl.constexpr) -> Any:  # noqa: N803
    step = tl.arange(0, 16)
    upper = (step[:, None] <= step[None, :]).to(tl.float32)
    rows = tl.dot(tl.reshape(v, (N // 16, 16)).to(tl.float32), upper).to(tl.int32)
    sums = tl.sum(tl.reshape(v, (N // 16, 16)), 1)
    return tl.reshape(rows + (tl.cumsum(sums, 0) - sums)[:, None], (N,))


way = by_cumsum


@triton.jit  # type: ignore[untyped-decorator]
def kernel(x: Any, y: Any, s: Any, N: tl.constexpr) -> None:  # noqa: N803
    lane = tl.arange(0, N)
    tl.store(y + lane, way(tl.load(x + lane), s, N))


def run(function: Any, *arguments: Any, warps: int = 4, **constants: Any) -> dict[str, float]:
    fast_interpreter.install()
    counter = Counter("k", [value for value in arguments if isinstance(value, torch.Tensor)], warps)
    with work_counter.counted(counter):
        function[(1,)](*arguments, **constants)
    return counter.counts()


def seconds(counts: dict[str, float]) -> float:
    """Return the modelled time if very many programs do the same."""
    step = cost.Step(name="k", kind="kernel", **{name: 1000 * counts[name] for name in cost.PROGRAM_COUNTS})
    return step.work_seconds(cost.H200)


def scanned_by(monkeypatch: pytest.MonkeyPatch, function: Any) -> dict[str, float]:
    monkeypatch.setitem(kernel.fn.__globals__, "way", function)
    x = torch.randint(-10, 10, (N,), dtype=torch.int32)
    y, scratch = torch.zeros_like(x), torch.zeros_like(x)
    counts = run(kernel, x, y, scratch, N=N)
    if function not in {by_tuples, by_atomics}:
        assert torch.equal(y, x.cumsum(0, dtype=torch.int32))
    return counts


def test_a_scan_is_counted_as_its_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = scanned_by(monkeypatch, by_cumsum)
    assert (counts["scanned"], counts["reduced"], counts["exchanged"], counts["bytes"]) == (N, 0, 0, 8 * N)
    assert counts["waits"] == 2
    tuples = scanned_by(monkeypatch, by_tuples)
    assert tuples["scanned"] == 3 * N
    # Seven operations to combine two summaries, done about four times an element.
    assert 20 * N < tuples["operations"] < 50 * N


def test_what_stays_within_a_thread_is_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = scanned_by(monkeypatch, by_rows)
    assert counts["scanned"] == N // 4
    assert counts["reduced"] == 0
    assert counts["exchanged"] >= 2 * N


BY_HAND = [by_gathering, by_halves, by_pairs, by_memory, by_atomics]


@pytest.mark.parametrize("function", BY_HAND, ids=lambda function: function.fn.__name__)
def test_a_scan_by_hand_is_no_cheaper(monkeypatch: pytest.MonkeyPatch, function: Any) -> None:
    assert seconds(scanned_by(monkeypatch, function)) > seconds(scanned_by(monkeypatch, by_cumsum))


def test_products_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = scanned_by(monkeypatch, by_products)
    assert counts["operations"] > 16 * N
    assert counts["exchanged"] > 3 * N


@triton.jit  # type: ignore[untyped-decorator]
def transposing(x: Any, y: Any) -> None:
    place = tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(y + place, tl.load(x + place).T)


def test_a_transposition_is_an_exchange_however_it_is_written() -> None:
    x, y = torch.arange(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    assert run(transposing, x, y)["exchanged"] == 64
    assert torch.equal(y.view(8, 8), x.view(8, 8).T)


@triton.jit  # type: ignore[untyped-decorator]
def counting_bins(x: Any, y: Any) -> None:
    tl.store(y + tl.arange(0, 8), tl.histogram(tl.load(x + tl.arange(0, 64)), 8))


def test_what_is_not_known_is_counted_as_a_scan() -> None:
    x, y = torch.zeros(64, dtype=torch.int32), torch.zeros(8, dtype=torch.int32)
    assert run(counting_bins, x, y)["scanned"] == 64


def test_wide_values_count_twice() -> None:
    x, y = torch.zeros(N, dtype=torch.int64), torch.zeros(N, dtype=torch.int64)
    assert run(kernel, x, y, y, N=N)["scanned"] == 2 * N


@triton.jit  # type: ignore[untyped-decorator]
def scanning_rows(x: Any, y: Any, N: tl.constexpr) -> None:  # noqa: N803
    place = 4 * tl.arange(0, N // 4)[:, None] + tl.arange(0, 4)[None, :]
    tl.store(y + place, tl.cumsum(tl.load(x + place), 1))


def test_scans_across_warps_and_of_many_rows_and_what_registers_do_not_hold_cost_more() -> None:
    x = torch.zeros(32_768, dtype=torch.int32)
    y = torch.zeros_like(x)
    assert run(kernel, x, y, None, N=4096, warps=8)["scanned"] == 1.5 * 4096
    assert run(scanning_rows, x, y, N=1024)["scanned"] == 0
    assert run(scanning_rows, x, y, N=4096)["scanned"] == 5 * 4096
    assert run(kernel, x, y, None, N=8192)["bytes"] == 8 * 8192
    assert run(kernel, x, y, None, N=32_768)["bytes"] == 16 * 32_768


def test_functions_that_only_forward_do_so() -> None:
    builder = interpreter.InterpreterBuilder
    for name in work_counter._FORWARDING.split():
        assert "self." in inspect.getsource(getattr(builder, name)), name


def patched() -> list[Any]:
    places = {"grid_idx", "grid_dim"}
    own = {name: value for name, value in vars(interpreter.interpreter_builder).items() if name not in places}
    return [own, interpreter.ScanOps.apply_impl, interpreter.ReduceOps.apply_impl]


def test_everything_is_as_it_was_after_a_launch() -> None:
    before = patched()
    run(kernel, torch.zeros(N, dtype=torch.int32), torch.zeros(N, dtype=torch.int32), None, N=N)
    assert patched() == before
