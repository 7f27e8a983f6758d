from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_cumsum.modelled import cost
from triton_cumsum.modelled.cost import H200, Step, extrapolate, extrapolate_count, floor, run_seconds
from triton_cumsum.profiles import ELEMENTS

COUNTS = st.integers(0, 2**40)
LENGTHS = st.integers(65_536 * 8, 65_536 * 12)


def kernel(moved: float, program: float = 0, name: str = "kernel", **counts: float) -> Step:
    return Step(name=name, kind="kernel", bytes=moved, program_bytes=program, **counts)


@given(length=LENGTHS, constant=COUNTS, slope=st.integers(0, 1000))
def test_linear_laws_are_exact(length: int, constant: int, slope: int) -> None:
    counts = [constant + slope * n for n in (length, 2 * length, 4 * length)]
    assert extrapolate_count(length, counts, ELEMENTS) == pytest.approx(constant + slope * ELEMENTS, rel=1e-9)


@given(length=LENGTHS, constant=COUNTS, slope=st.integers(0, 1000), bend=st.integers(1, 1000))
def test_quadratic_laws_are_exact_beyond_the_threshold(length: int, constant: int, slope: int, bend: int) -> None:
    counts = [constant + slope * n + bend * n * n for n in (length, 2 * length, 4 * length)]
    true = constant + slope * ELEMENTS + bend * ELEMENTS**2
    if 6 * bend * length**2 > cost.CURVATURE * counts[-1]:
        assert extrapolate_count(length, counts, ELEMENTS) == pytest.approx(true, rel=1e-6)


@given(length=LENGTHS, counts=st.tuples(COUNTS, COUNTS, COUNTS), nearer=st.integers(4 * 65_536 * 12, ELEMENTS))
def test_laws_never_fall(length: int, counts: tuple[int, int, int], nearer: int) -> None:
    assert (
        counts[-1]
        <= extrapolate_count(length, counts, nearer)
        <= extrapolate_count(length, counts, ELEMENTS) * (1 + 1e-12)
    )


@given(length=LENGTHS, slope=st.floats(8, 100), noise=st.tuples(*[st.floats(-1, 1)] * 3))
def test_noise_is_not_amplified(length: int, slope: float, noise: tuple[float, ...]) -> None:
    sizes = (length, 2 * length, 4 * length)
    counts = [slope * n * (1 + 1e-4 * error) for n, error in zip(sizes, noise, strict=True)]
    assert extrapolate_count(length, counts, ELEMENTS) == pytest.approx(slope * ELEMENTS, rel=2e-3)


@given(moved=COUNTS, more=COUNTS, program=COUNTS)
def test_time_rises_with_every_count(moved: int, more: int, program: int) -> None:
    least = run_seconds([kernel(moved, program)])
    assert run_seconds([kernel(moved + more, program)]) >= least
    assert run_seconds([kernel(moved, program + more)]) >= least
    assert run_seconds([kernel(moved, program), kernel(more)]) >= least


def test_a_step_takes_its_launch_and_the_slowest_resource() -> None:
    assert kernel(H200.bandwidth).seconds(H200) == pytest.approx(1 + H200.launch_s)
    assert kernel(8, H200.program.bytes).seconds(H200) == pytest.approx(1 + H200.launch_s)
    product = Step(name="aten::mm.default", kind="operator", flops=67e12)
    assert product.seconds(H200) == pytest.approx(1 + H200.launch_s)


def test_many_small_launches_are_bound_by_the_host() -> None:
    assert run_seconds([kernel(4)] * 100) == pytest.approx(100 * H200.host_launch_s)
    operator = Step(name="aten::add.Tensor", kind="operator", bytes=4)
    assert run_seconds([operator] * 100) == pytest.approx(100 * H200.host_operator_s)


@given(length=LENGTHS, passes=st.integers(8, 200))
def test_streaming_kernels_are_never_below_the_floor(length: int, passes: int) -> None:
    runs = [[kernel(passes * n)] for n in (length, 2 * length, 4 * length)]
    assert extrapolate(length, runs) >= floor(ELEMENTS) * (1 - 1e-12)


def test_waste_at_small_sizes_buys_nothing() -> None:
    n = 600_000
    honest = extrapolate(n, [[kernel(12 * size)] for size in (n, 2 * n, 4 * n)])
    wasteful = extrapolate(n, [[kernel(counts)] for counts in (48 * n, 48 * n, 48 * n)])
    assert wasteful >= honest - 3 * H200.launch_s


def test_waste_at_small_sizes_does_not_hide_a_large_program() -> None:
    n = 600_000
    sizes = (n // 8, n, 2 * n, 4 * n)
    small, *honest = [[kernel(8 * size, 8 * size)] for size in sizes]
    expected = 8 * ELEMENTS / H200.program.bytes
    assert extrapolate(n, honest, small=small) == pytest.approx(expected, rel=0.01)
    flat = [[kernel(32 * n, 32 * n)]] * 4
    assert extrapolate(n, flat[1:], small=flat[0]) >= 0.99 * expected
    other_steps = [[kernel(32 * n, 32 * n, name=str(size))] for size in sizes]
    assert extrapolate(n, other_steps[1:], small=other_steps[0]) >= 0.99 * expected


@given(length=LENGTHS, block=st.sampled_from([1024, 8192, 32_768]), overhead=st.integers(0, 100_000))
def test_programs_of_fixed_size_are_not_taken_to_grow(length: int, block: int, overhead: int) -> None:
    runs = [[kernel(8 * size + overhead, 8 * block)] for size in (length // 8, length, 2 * length, 4 * length)]
    assert extrapolate(length, runs[1:], small=runs[0]) == pytest.approx(extrapolate(length, runs[1:]), rel=1e-9)


def test_arithmetic_grows_at_least_in_proportion() -> None:
    n = 600_000
    step = Step(name="aten::mm.default", kind="operator", bytes=8, flops=1e12)
    assert extrapolate(n, [[step]] * 3) >= 1e12 / H200.flops * ELEMENTS / (4 * n)


def test_runs_of_different_steps_are_extrapolated_as_wholes() -> None:
    n = 600_000
    runs = [[kernel(10**8 * level) for _ in range(level + 2)] for level in (1, 2, 4)]
    assert extrapolate(n, runs) > run_seconds(runs[-1])


@pytest.mark.parametrize("runs", [[], [[], []], [[kernel(1)]] * 4])
def test_three_runs_are_needed(runs: list[list[Step]]) -> None:
    with pytest.raises(ValueError, match="three runs"):
        extrapolate(600_000, runs)


def test_work_across_threads_adds_to_memory_and_operations_hide_behind_it() -> None:
    rates = H200.rates
    copy = kernel(rates.bytes)
    assert kernel(rates.bytes, operations=0.9 * rates.operations).seconds(H200) == copy.seconds(H200)
    assert kernel(0, operations=2 * rates.operations).seconds(H200) == pytest.approx(2 + H200.launch_s)
    for name in ("scanned", "reduced", "exchanged"):
        step = kernel(rates.bytes, **{name: getattr(rates, name)})
        assert step.seconds(H200) == pytest.approx(2 + H200.launch_s)
    assert kernel(rates.bytes, waits=1e9).seconds(H200) == copy.seconds(H200)
    scan = Step(name="aten::cumsum.default", kind="operator", bytes=rates.bytes, scan_bytes=H200.scan_bandwidth)
    assert scan.seconds(H200) == pytest.approx(2 + H200.launch_s)


def test_in_one_program_all_work_is_added() -> None:
    each = {f"program_{name}": getattr(H200.program, name) for name in cost.PROGRAM_COUNTS[:-2]}
    step = Step(name="k", kind="kernel", program_waits=1 / H200.program.wait_s, **each)
    assert step.seconds(H200) == pytest.approx(8 + H200.launch_s)


@pytest.mark.parametrize("name", cost.PROGRAM_COUNTS)
def test_no_kind_of_work_of_a_growing_program_can_be_hidden_by_waste(name: str) -> None:
    n = 600_000
    sizes = (n // 8, n, 2 * n, 4 * n)

    def run(count: float) -> list[Step]:
        return [Step(name="k", kind="kernel", **{name: count, f"program_{name}": count})]

    honest, flat = [run(8 * size) for size in sizes], [run(32 * n)] * 4
    expected = extrapolate(n, honest[1:], small=honest[0])
    assert extrapolate(n, flat[1:], small=flat[0]) >= 0.99 * expected


def test_a_window_that_fills_is_not_taken_to_grow_without_end() -> None:
    n, tile = 65_536 * 8, 8192
    windows = [[min(place, 128) for place in range(size // tile)] for size in (n, 2 * n, 4 * n)]
    runs = [
        [kernel(8 * size + 8 * sum(reads), 8 * tile + 8 * max(reads), programs=len(reads))]
        for size, reads in zip((n, 2 * n, 4 * n), windows, strict=True)
    ]
    assert extrapolate(n, runs) == pytest.approx((8 + 8 * 128 / tile) * ELEMENTS / H200.bandwidth, rel=0.02)


def test_steps_of_the_meter_are_checked() -> None:
    good = {"name": "k", "kind": "kernel", "bytes": 1, "program_waits": 3}
    assert cost.parse_steps([good]) == [Step(name="k", kind="kernel", bytes=1, program_waits=3)]
    for bad in ({"name": "k"}, good | {"unknown": 1}, {"name": "k", "kind": "kernel", "scanned": 1}):
        with pytest.raises(ValueError, match="lacks a field"):
            cost.parse_steps([bad])
    for value in (-1, float("nan")):
        with pytest.raises(ValueError, match="negative"):
            cost.parse_steps([good | {"scanned": value}])
