"""Which of a host's GPUs is for what, so that nothing else runs on a GPU while a time is measured on it.

A program is confined to one GPU by ``CUDA_VISIBLE_DEVICES``, which it hands on to all that it starts.
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
    """The GPUs of a host by their use, as UUIDs; neither list is empty."""

    timed: tuple[str, ...]
    """For scorings that measure time."""
    other: tuple[str, ...]
    """For all else: sessions, training, scorings that measure no time. The same as ``timed`` where nothing is set
    apart."""

    @property
    def separate(self) -> bool:
        """Whether nothing but scorings runs on the GPUs on which time is measured."""
        return not set(self.timed) & set(self.other)


def share_gpus(gpus: Sequence[Gpu]) -> GpuPlan:
    """Return the plan that uses all GPUs for everything."""
    uuids = tuple(gpu.uuid for gpu in gpus)
    return GpuPlan(uuids, uuids)


def dedicate_gpu(gpus: Sequence[Gpu], choice: str | None = None) -> GpuPlan:
    """Return the plan that sets one GPU apart to measure time on, where there are several.

    Args:
        gpus: what CUDA shows, in its order.
        choice: the index or UUID of the one to set apart; by default the last, since programs of others that choose
            none run on the first.

    Raises:
        UsageError: if there is no such GPU.
    """
    chosen = gpus[-1].uuid if choice is None else find_gpu(gpus, choice, "--scoring-gpu").uuid
    return GpuPlan((chosen,), tuple(gpu.uuid for gpu in gpus if gpu.uuid != chosen) or (chosen,))


def only_gpus(*uuids: str | None) -> dict[str, str]:
    """Return the environment variable that shows a program these GPUs, numbered from 0 in this order.

    What is None is left out; without any GPU there is no variable, and the program sees what we see.
    """
    shown = ",".join(filter(None, uuids))
    return {_VISIBLE: shown} if shown else {}


def keep_off_timed(plan: GpuPlan) -> None:
    """Show what this process starts from now on the other GPUs alone, unless it is told otherwise."""
    os.environ.update(only_gpus(*plan.other))


def find_gpu(gpus: Sequence[Gpu], choice: str, option: str) -> Gpu:
    """Return the GPU with an index or UUID.

    Raises:
        UsageError: if there is none; it names the ``option`` that the choice came from.
    """
    for gpu in gpus:
        if choice.lower() in {str(gpu.index), gpu.uuid.lower()}:
            return gpu
    known = ", ".join(f"{gpu.index} ({gpu.name}, {gpu.uuid})" for gpu in gpus)
    raise UsageError(f"{option} {choice}: there is no such GPU here; give the index or UUID of one of: {known}")
