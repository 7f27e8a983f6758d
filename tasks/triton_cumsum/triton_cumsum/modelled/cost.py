"""The time model: from what a run moves and computes to seconds on a named device.

A step takes the time of its launch plus the longest of three: that of all its work on the whole device, that of its
largest program, alone on one multiprocessor, and that until its last program has ended, if they wait for each other.
On the whole device, memory and elementwise operations overlap, since
programs that wait make room for others. Scans, reductions and exchanges between threads are added: a kernel that has
its block in registers while it scans leaves room for few other programs, whose memory accesses could overlap. A lean
kernel does overlap them, and is modelled too slow by up to the time of its scans. In one program everything waits for
what came before, so all is added. Steps run one after the other on the device while the host launches them, so a run
takes the longer of the two. The cost of a run of 10^8 elements is extrapolated from runs at three sizes ``n``, ``2n``
and ``4n`` and checked by one at ``n/8``. Times are seconds, rates are per second.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from triton_cumsum.harness.device import H200, Device, program_seconds, work_seconds
from triton_cumsum.profiles import BYTES_PER_ELEMENT, ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["H200", "Device", "Step", "extrapolate", "floor", "parse_steps", "run_seconds"]

CURVATURE = 2**-11
"""Below this share of the largest count, curvature is taken for noise and the law for a straight line.

Counts of kernels whose accesses do not depend on the data are exact, so a true quadratic part shows at any size, and
counts of the others scatter by about one in a thousand. From 4n to 10^8 is a factor of up to 48: a quadratic part left
out at this threshold is at most 7 % of the time, while noise at ten times the threshold would add 60 %.
"""


@dataclass(frozen=True)
class Step:
    """One launch: ``kind`` is ``"kernel"`` or ``"operator"``; the counts are of one run.

    ``scan_bytes`` and ``flops`` are torch's; what begins with ``program_`` is of the kernel's largest program. ``span``
    is the time at which its last program ends, for all that programs wait for each other, and ``span_slope`` by how
    much another program moves that.
    """

    name: str
    kind: str
    bytes: float = 0.0
    operations: float = 0.0
    scanned: float = 0.0
    reduced: float = 0.0
    exchanged: float = 0.0
    lines: float = 0.0
    partial: float = 0.0
    polls: float = 0.0
    waits: float = 0.0
    programs: float = 0.0
    span: float = 0.0
    span_slope: float = 0.0
    scan_bytes: float = 0.0
    flops: float = 0.0
    program_bytes: float = 0.0
    program_operations: float = 0.0
    program_scanned: float = 0.0
    program_reduced: float = 0.0
    program_exchanged: float = 0.0
    program_lines: float = 0.0
    program_partial: float = 0.0
    program_polls: float = 0.0
    program_waits: float = 0.0

    def seconds(self, device: Device) -> float:
        """Return the time on the device, its launch included."""
        own = {name: getattr(self, f"program_{name}") for name in PROGRAM_COUNTS}
        return device.launch_s + max(self.work_seconds(device), program_seconds(own, device.program), self.span)

    def work_seconds(self, device: Device) -> float:
        """Return the time of all programs' work on the whole device."""
        work = work_seconds({name: getattr(self, name) for name in PROGRAM_COUNTS}, device.rates)
        return max(work, self.flops / device.flops) + self.scan_bytes / device.scan_bandwidth

    def span_at(self, programs: float) -> float:
        """Return the time at which the last of so many programs ends."""
        return self.span + self.span_slope * max(0.0, programs - self.programs)

    def host_seconds(self, device: Device) -> float:
        """Return the time that the host takes to launch the step from Python."""
        return device.host_launch_s if self.kind == "kernel" else device.host_operator_s


COUNTS = tuple(field.name for field in fields(Step) if field.name not in {"name", "kind"})
PROGRAM_COUNTS = tuple(name.removeprefix("program_") for name in COUNTS if name.startswith("program_"))


def parse_steps(records: Iterable[Mapping[str, Any]]) -> list[Step]:
    """Return the steps that the meter's ``replay`` counted; a count that a record does not have is zero.

    Raises:
        ValueError: if a record lacks its name, kind or bytes, or a count is unknown or negative.
    """
    steps = []
    for record in records:
        try:
            counts = {key: float(value) for key, value in record.items() if key not in {"name", "kind"}}
            counts["bytes"] = float(record["bytes"])
            step = Step(name=str(record["name"]), kind=str(record["kind"]), **counts)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"a step of the meter lacks a field, or has one too many: {error!r}") from error
        if not all(count >= 0 for count in counts.values()):
            raise ValueError(f"step {step.name} of the meter has a negative count")
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
    times of the whole runs are. Waste at the small sizes cannot buy a falling law: the work at ``target`` is never
    taken to be less than in proportion to the largest run, and :func:`extrapolate_largest_program` holds the largest
    programs to what they have grown since ``small``, a run at an eighth of ``length`` (without it, since ``length``).

    Raises:
        ValueError: if there are not three runs or ``target`` is not beyond the largest.
    """
    if len(runs) != 3 or length < 1 or target < 4 * length:  # noqa: PLR2004 - n, 2n and 4n
        raise ValueError(f"three runs at n, 2n and 4n <= {target} are needed; there are {len(runs)} with n = {length}")
    first, second, third = runs
    growth = target / (4 * length)
    smaller = length / 8 if small else length
    serial = {
        name: extrapolate_largest_program(name, smaller, small or first, 4 * length, third, target)
        for name in PROGRAM_COUNTS
    }
    least = max(growth * sum(step.work_seconds(device) for step in third), program_seconds(serial, device.program))
    least = max(least, sum(step.span_at(growth * step.programs) for step in third))
    if not [step.name for step in first] == [step.name for step in second] == [step.name for step in third]:
        seconds = extrapolate_count(length, [run_seconds(run, device) for run in runs], target)
        return max(seconds, least)
    steps = [_step_at(length, triple, target) for triple in zip(first, second, third, strict=True)]
    return max(run_seconds(steps, device), least)


def extrapolate_largest_program(  # noqa: PLR0917 - two runs, each with its length
    name: str, smaller: float, before: Sequence[Step], length: int, after: Sequence[Step], target: int
) -> float:
    """Return one count of the largest programs of all kernels at ``target``, on the line through two runs.

    The runs are ``before`` at ``smaller`` elements and ``after`` at ``length``. What kernels have at ``smaller`` beyond
    their share of the run at ``length`` is taken for waste of their largest programs and does not count: else a
    submission could make programs that grow seem to be of fixed size.
    """
    share = smaller / length * sum(getattr(step, name) for step in after if step.kind == "kernel")
    waste = max(0.0, sum(getattr(step, name) for step in before if step.kind == "kernel") - share)
    low: float = max(0.0, sum(getattr(step, f"program_{name}") for step in before) - waste)
    high: float = sum(getattr(step, f"program_{name}") for step in after)
    return high + max(0.0, high - low) * (target - length) / (length - smaller)


def extrapolate_count(length: int, counts: Sequence[float], target: int) -> float:
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
    counts = {name: extrapolate_count(length, [getattr(step, name) for step in triple], target) for name in COUNTS}
    if counts["programs"]:
        # What rises faster only until all programs are as large as the largest, such as a look-back's window, would
        # be taken to do so without end.
        most = {name: counts["programs"] * counts[f"program_{name}"] for name in PROGRAM_COUNTS}
        counts |= {name: min(counts[name], bound) for name, bound in most.items()}
    # Waiting is measured within the largest run: what smaller ones waste cannot make it seem to grow less.
    counts |= {"span": triple[-1].span_at(counts["programs"]), "span_slope": triple[-1].span_slope}
    return Step(name=triple[-1].name, kind=triple[-1].kind, **counts)
