"""The time model: from the bytes and launches of a run to seconds on a named device.

A step takes the time of its launch plus the longest of three: its bytes at the device's bandwidth, the bytes of its
largest program at the bandwidth of one multiprocessor, its arithmetic at the peak rate. Steps run one after the other
on the device while the host launches them, so a run takes the longer of the two. The cost of a run of 10^8 elements
is extrapolated from runs at three sizes ``n``, ``2n`` and ``4n`` and checked by one at ``n/8``. Times are seconds,
rates are per second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ELEMENTS = 100_000_000
BYTES_PER_ELEMENT = 8
"""What every solution moves at the least: each int32 is read once and written once."""

CURVATURE = 2**-11
"""Below this share of the largest count, curvature is taken for noise and the law for a straight line.

Counts of kernels whose accesses do not depend on the data are exact, so a true quadratic part shows at any size, and
counts of the others scatter by about one in a thousand. From 4n to 10^8 is a factor of up to 48: a quadratic part left
out at this threshold is at most 7 % of the time, while noise at ten times the threshold would add 60 %.
"""


@dataclass(frozen=True)
class Device:
    """What the model knows of a device; ``modelled/measure_device.py`` measures all but ``flops``."""

    name: str
    multiprocessors: int
    bandwidth: float
    program_bandwidth: float
    launch_s: float
    host_launch_s: float
    host_operator_s: float
    flops: float
    source: str


H200 = Device(
    name="NVIDIA H200",
    multiprocessors=132,
    bandwidth=3.99e12,
    program_bandwidth=88.5e9,
    launch_s=0.84e-6,
    host_launch_s=10.3e-6,
    host_operator_s=7.0e-6,
    flops=67e12,
    source=(
        "measured 2026-11-21 on one NVIDIA H200, driver 580.159.04, torch 2.11.0+cu130, triton 3.6.0; "
        "flops: the data sheet's figure for fp32"
    ),
)


@dataclass(frozen=True)
class Step:
    """One launch: ``kind`` is ``"kernel"`` or ``"operator"``; the counts are of one run."""

    name: str
    kind: str
    bytes: float
    program_bytes: float
    flops: float

    def seconds(self, device: Device) -> float:
        """Return the time on the device, its launch included."""
        slowest = max(
            self.bytes / device.bandwidth, self.program_bytes / device.program_bandwidth, self.flops / device.flops
        )
        return device.launch_s + slowest

    def host_seconds(self, device: Device) -> float:
        """Return the time that the host takes to launch the step from Python."""
        return device.host_launch_s if self.kind == "kernel" else device.host_operator_s


def steps_of(records: Iterable[Mapping[str, Any]]) -> list[Step]:
    """Return the steps that the meter's ``replay`` counted.

    Raises:
        ValueError: if a record lacks a field or a count is negative.
    """
    steps = []
    for record in records:
        try:
            counts = {key: float(record[key]) for key in ("bytes", "program_bytes", "flops")}
            step = Step(name=str(record["name"]), kind=str(record["kind"]), **counts)
        except (KeyError, TypeError) as error:
            msg = f"a step of the meter lacks a field: {error!r}"
            raise ValueError(msg) from error
        if min(counts.values()) < 0:
            msg = f"step {step.name} of the meter has a negative count"
            raise ValueError(msg)
        steps.append(step)
    return steps


def run_seconds(steps: Sequence[Step], device: Device = H200) -> float:
    """Return the modelled time of one run: the device's steps or the host's launches, whichever take longer."""
    return max(sum(step.seconds(device) for step in steps), sum(step.host_seconds(device) for step in steps))


def floor(length: int, device: Device = H200) -> float:
    """Return the time below which no solution can be: one launch that reads and writes each element once."""
    return device.launch_s + BYTES_PER_ELEMENT * length / device.bandwidth


def extrapolate(
    length: int,
    runs: Sequence[Sequence[Step]],
    device: Device = H200,
    target: int = ELEMENTS,
    *,
    small: Sequence[Step] = (),
) -> float:
    """Return the modelled seconds at ``target`` elements from runs at ``length``, twice and four times that.

    If the runs take the same steps in the same order, each step's counts are extrapolated by their own law, else the
    times of the whole runs are. Waste at the small sizes cannot buy a falling law: bytes and arithmetic at ``target``
    are never taken to be fewer than in proportion to the largest run, and :func:`serial_bytes` holds the largest
    programs to what they have grown since ``small``, a run at an eighth of ``length`` (without it, since ``length``).

    Raises:
        ValueError: if there are not three runs or ``target`` is not beyond the largest.
    """
    if len(runs) != 3 or length < 1 or target < 4 * length:  # noqa: PLR2004 - n, 2n and 4n
        msg = f"three runs at n, 2n and 4n <= {target} are needed; there are {len(runs)} with n = {length}"
        raise ValueError(msg)
    first, second, third = runs
    growth = target / (4 * length)
    moved, flops = sum(step.bytes for step in third), sum(step.flops for step in third)
    serial = serial_bytes(length / 8 if small else length, small or first, 4 * length, third, target)
    least = max(growth * moved / device.bandwidth, growth * flops / device.flops, serial / device.program_bandwidth)
    if not [step.name for step in first] == [step.name for step in second] == [step.name for step in third]:
        seconds = law(length, [run_seconds(run, device) for run in runs], target)
        return max(seconds, least)
    steps = [_step_at(length, triple, target) for triple in zip(first, second, third, strict=True)]
    return max(run_seconds(steps, device), least)


def serial_bytes(smaller: float, before: Sequence[Step], length: int, after: Sequence[Step], target: int) -> float:
    """Return the bytes of the largest programs of all kernels at ``target``, on the line through two runs.

    The runs are ``before`` at ``smaller`` elements and ``after`` at ``length``. What kernels move at ``smaller`` beyond
    their share of the run at ``length`` is taken for waste of their largest programs and does not count: else a
    submission could make programs that grow seem to be of fixed size.
    """
    share = smaller / length * sum(step.bytes for step in after if step.kind == "kernel")
    waste = max(0.0, sum(step.bytes for step in before if step.kind == "kernel") - share)
    low = max(0.0, sum(step.program_bytes for step in before) - waste)
    high = sum(step.program_bytes for step in after)
    return high + max(0.0, high - low) * (target - length) / (length - smaller)


def law(length: int, counts: Sequence[float], target: int) -> float:
    """Return the value at ``target`` of the law through ``counts`` at ``length``, twice and four times that.

    The law is the polynomial of degree two through the three points where it bends upwards by more than
    :data:`CURVATURE`, else the straight line through the last two; a falling line is taken to be flat. It is exact for
    counts that are linear, or quadratic beyond the threshold, and rises with ``target``.
    """
    low, middle, high = counts
    steps_beyond = (target - 4 * length) / length
    slope = (high - middle) / 2
    bend = (high - middle) - 2 * (middle - low)
    if bend <= CURVATURE * high or middle < low:
        return high + max(0.0, slope) * steps_beyond
    # Newton's form in units of `length`: nodes 4, 2 and 1, and the second divided difference is bend / 6.
    return high + slope * steps_beyond + bend / 6 * steps_beyond * (steps_beyond + 2)


def _step_at(length: int, triple: tuple[Step, Step, Step], target: int) -> Step:
    last = triple[-1]
    return Step(
        name=last.name,
        kind=last.kind,
        bytes=law(length, [step.bytes for step in triple], target),
        program_bytes=law(length, [step.program_bytes for step in triple], target),
        flops=law(length, [step.flops for step in triple], target),
    )
