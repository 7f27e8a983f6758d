"""The constants of the time model of profile ``cpu``, and the cost of a step as the meter counts it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """A GPU as the model sees it: times in seconds, rates per second."""

    name: str
    bandwidth: float
    """Bytes that all programs together read and write; measured with a copy."""
    program_bandwidth: float
    """Bytes that one program reads and writes; measured with a copy by one program."""
    launch_s: float
    """What a launch takes on the device; measured as 0.8 us, while the host goes ahead."""
    wait_s: float
    """From one program's store until another sees it; fitted to a chain of waiting programs."""
    flops: float
    """Of torch's matrix products; the data sheet's figure for fp32."""


H200 = Device(
    name="NVIDIA H200", bandwidth=4.07e12, program_bandwidth=82.7e9, launch_s=2e-6, wait_s=0.7e-6, flops=67e12
)


@dataclass(frozen=True)
class Step:
    """One launch of a kernel or one torch operator, as counted in a replay."""

    name: str
    kind: str
    """``kernel`` or ``operator``."""
    bytes: int
    """Bytes to and from memory."""
    largest: int = 0
    """Those of the kernel's program that has the most."""
    waited_s: float = 0.0
    """The longest time that one of its programs has spent waiting for others, theirs included."""
    programs: int = 0
    """Programs of the kernel."""
    found: int = 0
    """Bytes that its programs did not move, since they had loaded them shortly before."""
    flops: int = 0
    """Floating-point operations of a matrix product."""
