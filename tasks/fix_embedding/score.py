"""The scorer of fix_embedding: raw = ln(held-out loss - floor), lower is better.

What crosses to this process are the tensors' bytes, of the sizes that it asked for; the file is read in a sandbox
(``harness/loader.py``). The model that they are put into is our own.
"""

from __future__ import annotations

import time
from pathlib import Path

from re_bench.scoring.language import heldout_tokens, log_above_floor
from re_bench.scoring.score import Job, Measured, main


def measure(job: Job) -> Measured:
    """Read the submission's tensors in a sandbox, and evaluate them on the held-out text."""
    with job.untrusted("harness/loader.py") as process:
        # These import torch, while the process does.
        from fix_embedding import grading, tensors  # noqa: PLC0415
        from fix_embedding.profiles import PROFILES  # noqa: PLC0415

        profile = PROFILES[job.profile_name]
        windows = grading.scored_windows(heldout_tokens(job, profile.text), profile.context, profile.heldout_tokens)
        file, state = tensors.receive(process, job, tensors.tensors_of(profile.large.config, profile.dtype))
    started = time.monotonic()
    loss = grading.mean_loss(
        profile.large.config,
        state,
        windows,
        batch=profile.scoring_batch,
        device=job.profile.device,
        say=job.progress,
    )
    details = {
        "loss": loss,
        "floor": profile.floor,
        "tokens": windows.shape[0] * profile.context,
        "evaluation_seconds": round(time.monotonic() - started, 3),
        "file": file,
    }
    message = f"loss {loss:.4f} on {details['tokens']:,} held-out tokens; the score is ln(loss - {profile.floor:g})"
    return Measured(log_above_floor(loss, profile.floor), message, details)


if __name__ == "__main__":
    main(measure, Path(__file__).parent)
