"""Score a submission on a GPU with two sandboxed runners: one for our solutions and one for the submission."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

from re_bench.api import RawScore, RunAnchors
from re_bench.errors import InvalidSubmissionError
from re_bench.gpu import state as gpu_state
from triton_cumsum.measured.figures import roofline
from triton_cumsum.measured.kernel_cache import kernel_cache
from triton_cumsum.profiles import ELEMENTS, Gpu
from triton_cumsum.sandboxed import gpu_runner

if TYPE_CHECKING:
    from re_bench.task.interface import Job


def score(job: Job[Gpu]) -> RawScore:
    """Check the submission, and time it on the GPU; see :mod:`triton_cumsum.measured.contest`.

    Raises:
        InvalidSubmissionError: if a result is wrong, the submission kept the GPU or the host busy out of turn, or its
            time is below the floor.
        UsageError: if torch does not see the GPU, or too little GPU memory is free.
        ReBenchError: if one of our solutions fails, or the GPU was disturbed before the submission was loaded.
    """
    gpu = gpu_state.identify()
    ours = [job.task.directory / name for name in ("baseline", "reference")]
    with (
        ExitStack() as stack,
        kernel_cache(job.backend, ours, gpu.name) as kernels,
        job.sandbox(
            gpu_runner,
            gpu=gpu.uuid,
            submission=False,
            sealed=False,
            visible=ours,
            writable=kernels.writable,
            environment=kernels.environment,
        ) as trusted,
        job.sandbox(gpu_runner, sealed=False, gpu=gpu.uuid) as untrusted,
    ):
        with ThreadPoolExecutor(2) as pool:
            starts = [pool.submit(runner.call, gpu_runner.start) for runner in (trusted, untrusted)]
            from triton_cumsum.measured import contest  # noqa: PLC0415 - imports torch while the runners do
        for start in starts:
            start.result()
        result = contest.run_contest(job, gpu, trusted, untrusted, stack, compiled=kernels.keep)
    baseline, reference, own = (result.times[name] for name in ("baseline", "reference", "submission"))
    if own.milliseconds < result.floor_ms:
        raise InvalidSubmissionError(
            f"a time of {own.milliseconds:.4f} ms is below the {result.floor_ms:.4f} ms of reading and writing once "
            f"at the peak bandwidth of {gpu.name}"
        )
    message = f"measured for {ELEMENTS:,} elements on {gpu.name}, alternating with baseline and reference"
    anchors = RunAnchors(math.log(baseline.milliseconds), math.log(reference.milliseconds))
    milliseconds = {name: time.milliseconds for name, time in result.times.items()}
    near = roofline(milliseconds, result.details["copy_ms"], gpu.peak_bandwidth)
    details = {**result.details, "roofline": near}
    return RawScore(math.log(own.milliseconds), message, details, anchors if job.settings.in_run else None)
