"""The constants of the time model of profile ``cpu``, and the counted cost of a step."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """A GPU as the model sees it: times in seconds, rates per second."""

    name: str
    bandwidth: float
    """Bytes read and written by all programs together; measured with a copy."""
    program_bandwidth: float
    """Bytes read and written by one program; measured with a copy by one program."""
    launch_s: float
    """Time of a launch on the device; measured as 0.8 us while the host runs ahead."""
    wait_s: float
    """Time until a store is visible to other programs; fitted to a chain of waiting programs."""
    flops: float
    """Rate of torch's matrix products; fp32 in the data sheet."""


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
    """Bytes of the kernel's largest program."""
    waited_s: float = 0.0
    """The longest time that a program waited for others, including their waits."""
    programs: int = 0
    """Number of programs of the kernel."""
    found: int = 0
    """Bytes found in the programs' caches instead of moved."""
    flops: int = 0
    """Floating-point operations of a matrix product."""
