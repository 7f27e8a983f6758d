"""Sizes, limits and tolerances of the profiles ``cpu`` and ``gpu``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ELEMENTS = 100_000_000
"""Elements of the input whose time is the score."""
BYTES_PER_ELEMENT = 8
"""What every solution moves at the least: each int32 is read once and written once."""
GIB = 1 << 30


@dataclass(frozen=True)
class Cpu:
    """Profile ``cpu``: Triton's interpreter, and a modelled time."""

    call_s: float = 30.0
    """Wall-clock limit of one call; a sensible kernel takes a second or two in the interpreter."""
    replay_s: float = 90.0
    """Wall-clock limit of one replay."""
    environment: Mapping[str, str] = field(default_factory=lambda: {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"})
    """Extra environment variables of the sandboxed processes."""
    length: int = 1 << 20
    """The length at which costs are counted; launches are also counted at a quarter of it."""
    checked: range = range(100_000, 500_000)
    """A secret length of these is checked."""


@dataclass(frozen=True)
class Gpu:
    """Profile ``gpu``: the time on this machine's GPU, in turns with our baseline and reference."""

    rounds: int = 7
    """Rounds in each of which baseline, reference and submission have a turn; the median over rounds counts."""
    rounds_slow: int = 3
    """Rounds that are enough where the submission takes more than :attr:`slow` times as long as the reference."""
    slow: float = 4.0
    """See :attr:`rounds_slow`."""
    rounds_alone: int = 5
    """Rounds of baseline and reference before the submission is loaded."""
    baseline_calls: int = 26
    """Calls of a turn of the baseline: as many as a submission of its speed would have."""
    max_slowdown: float = 0.02
    """Baseline and reference may become slower by this share once the submission is loaded."""
    max_control_growth: float = 1.05
    """What a turn costs beside its calls counts up to this many times what it was before the submission was loaded."""
    max_host_share: float = 0.5
    """The cores, in number, that the submission may keep busy while our solutions have their turn."""
    call_s: float = 20.0
    """Wall-clock limit of one call, as in the original task."""
    profile_s: float = 10.0
    """Wall-clock limit of the profile of one call, after the turns."""
    longest_turn_s: float = 0.1
    """Turns of slow submissions have fewer calls, so that they take about this long."""
    calls: range = range(4, 65)
    """How many calls a turn may have; as many as the free memory allows."""
    check_shortening: int = 1 << 16
    """The long inputs of the check are up to this many elements shorter than the timed ones."""
    probes: int = 65_536
    """Places of each result that are read before the clock stops."""
    signal_s: float = 1.0
    """How long the results are waited for before the runner is asked to see to the end of its work."""
    wide_values: int = 64
    """Values of each input that are of the full range of int32, whatever the others are."""
    spare_bytes: int = 4 * GIB
    """Room for intermediate tensors beside the results, in each of the two arenas."""
    reserved_bytes: int = 4 * GIB
    """Room for CUDA's contexts and the verifier's own intermediate tensors."""


CPU, GPU = Cpu(), Gpu()
PROFILES: Mapping[str, Cpu | Gpu] = {"cpu": CPU, "gpu": GPU}
