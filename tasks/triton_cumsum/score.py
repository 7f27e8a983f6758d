"""Score triton_cumsum: raw = ln(milliseconds) of a prefix sum; lower is better."""

from __future__ import annotations

from typing import cast

from re_bench.api import Job, RawScore, Task, main
from triton_cumsum import modelled
from triton_cumsum.profiles import PROFILES, Cpu, Gpu


class TritonCumsum(Task[Cpu | Gpu]):
    """Write a fast kernel for a conditional prefix sum."""

    profiles = PROFILES

    def score(self, job: Job[Cpu | Gpu]) -> RawScore:
        """Check that the submission's results are exact, and time it on a GPU or model its time without a GPU."""
        if isinstance(job.profile, Cpu):
            return modelled.score(cast("Job[Cpu]", job))
        from triton_cumsum.measured import score as measured  # noqa: PLC0415 - needs a GPU

        return measured.score(cast("Job[Gpu]", job))


if __name__ == "__main__":
    main(TritonCumsum())
