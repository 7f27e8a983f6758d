"""Assign a host's GPUs to timed scorings and to other work, so that nothing disturbs timings.

``CUDA_VISIBLE_DEVICES``, which child processes inherit, restricts a program to its GPUs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from re_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from re_bench.gpu.state import Gpu

_VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class GpuPlan:
    """The UUIDs of a host's GPUs by use; neither list is empty."""

    timed: tuple[str, ...]
    """For timed scorings."""
    other: tuple[str, ...]
    """For sessions, training and untimed scorings. Equal to ``timed`` if no GPU is reserved."""

    @property
    def separate(self) -> bool:
        """Whether the GPUs for timed scorings are used for nothing else."""
        return not set(self.timed) & set(self.other)


def share_gpus(gpus: Sequence[Gpu]) -> GpuPlan:
    """Return a plan that uses all GPUs for everything."""
    uuids = tuple(gpu.uuid for gpu in gpus)
    return GpuPlan(uuids, uuids)


def dedicate_gpu(gpus: Sequence[Gpu], choice: str | None = None) -> GpuPlan:
    """Return a plan that reserves one GPU for timed scorings if there are several.

    Args:
        gpus: the GPUs in CUDA's order.
        choice: the index or UUID of the GPU to reserve; by default the last, since other programs run on the first
            by default.

    Raises:
        UsageError: if there is no such GPU.
    """
    chosen = gpus[-1].uuid if choice is None else find_gpu(gpus, choice, "--scoring-gpu").uuid
    return GpuPlan((chosen,), tuple(gpu.uuid for gpu in gpus if gpu.uuid != chosen) or (chosen,))


def only_gpus(*uuids: str | None) -> dict[str, str]:
    """Return the environment variable that restricts a program to these GPUs, numbered from 0 in this order.

    None is ignored. Without any GPU the result is empty and changes nothing.
    """
    shown = ",".join(filter(None, uuids))
    return {_VISIBLE: shown} if shown else {}


def hide_timed_gpus(plan: GpuPlan) -> None:
    """Restrict programs that this process starts to the GPUs for other work, unless they are told otherwise."""
    os.environ.update(only_gpus(*plan.other))


def find_gpu(gpus: Sequence[Gpu], choice: str, option: str) -> Gpu:
    """Return the GPU with an index or UUID.

    Raises:
        UsageError: if there is none; the message names the command-line ``option``.
    """
    for gpu in gpus:
        if choice.lower() in {str(gpu.index), gpu.uuid.lower()}:
            return gpu
    known = ", ".join(f"{gpu.index} ({gpu.name}, {gpu.uuid})" for gpu in gpus)
    raise UsageError(f"{option} {choice}: no such GPU here; give the index or UUID of one of: {known}")
