"""What this machine has: GPUs, memory, cores, and room on its disks."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.data.cache import cache_directory
from re_bench.errors import UsageError
from re_bench.gpu import state
from re_bench.runs.doctor.finding import Finding, Target, names
from re_bench.runs.local_executor import machine_memory_mib

if TYPE_CHECKING:
    from collections.abc import Sequence

_GIB = 1 << 30
_ROOM_GIB = 2
"""All tasks of the repository prepared for profile ``cpu`` take 0.2 GiB; a validation's copies fit into the rest."""


def check_gpus(targets: Sequence[Target]) -> Finding:
    """Name the GPUs that CUDA shows with their driver; their absence is a problem of profiles that need one."""
    needing = [target for target in targets if target.task.profile(target.profile).device == "cuda"]
    try:
        gpus = state.identify_all()
    except UsageError as error:
        if not needing:
            return Finding("gpu", "note", "none that CUDA shows; no profile here needs one")
        return Finding("gpu", "problem", str(error), "type: nvidia-smi, or choose --profile cpu", names(needing))
    shown = ", ".join(dict.fromkeys(f"{sum(one.name == gpu.name for one in gpus)} {gpu.name}" for gpu in gpus))
    return Finding("gpu", "ok", f"{shown}; driver {gpus[0].driver or 'of unknown version'}")


def check_memory(targets: Sequence[Target]) -> Finding:
    """Compare the machine's memory with what a submission's process may take in the profiles."""
    memory, cores = machine_memory_mib(), len(os.sched_getaffinity(0))
    text = f"{memory / 1024:.1f} GiB, {cores} core{'s' * (cores > 1)}"
    most = max((target.task.profile(target.profile).limits.memory_mib for target in targets), default=0)
    if memory >= most:
        return Finding("memory", "ok", text)
    found = (
        f"{text}; a submission may take {most / 1024:.1f} GiB, and one that does makes the machine swap or end programs"
    )
    return Finding("memory", "note", found, "run one scoring at a time: --jobs 1")


def check_room(title: str, directory: Path, variable: str) -> Finding:
    """Find out whether a directory, or where it will be made, takes files, and whether there is room.

    Args:
        title: what the check is called.
        directory: it need not exist yet.
        variable: the environment variable that chooses another one.
    """
    there = next(path for path in (directory, *directory.parents) if path.exists())
    remedy = f"set {variable} to a directory with {_ROOM_GIB} GiB of room"
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        return Finding(title, "problem", f"{directory}: nothing can be written there", remedy)
    free = shutil.disk_usage(there).free
    text = f"{directory}: {free / _GIB:.1f} GiB free"
    return Finding(title, "ok", text) if free >= _ROOM_GIB * _GIB else Finding(title, "problem", text, remedy)


def check_disks() -> list[Finding]:
    """Look at the cache of prepared data and at the directory of temporary files."""
    return [
        check_room("cache", cache_directory(), "RE_BENCH_CACHE"),
        check_room("temp", Path(tempfile.gettempdir()), "TMPDIR"),
    ]
