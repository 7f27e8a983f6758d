"""The scorer of fix_embedding: raw = ln(held-out loss - floor), lower is better.

One sandbox reads the submission's file (``harness/loader.py``), another puts the tensors into our own model and
evaluates it (``harness/evaluator.py``). This process imports no torch, passes bytes on, and takes the means.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fix_embedding import grading, tensors
from fix_embedding.profiles import PROFILES
from re_bench import lm
from re_bench.gpu import state as gpu_state
from re_bench.scoring.language import heldout_tokens, interim_windows, log_above_floor
from re_bench.scoring.score import Job, Measured, main

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads that wait for each other leave the cores to other scorings."""


def measure(job: Job) -> Measured:
    """Read the submission's tensors in one sandbox, evaluate them on the held-out text in another."""
    profile = PROFILES[job.profile_name]
    gpu = gpu_state.identify() if job.profile.device == "cuda" else None
    modules = Path(lm.__path__[0])
    build = {"modules": str(modules), "sizes": profile.large.sizes._asdict()}
    with ExitStack() as stack:
        with job.untrusted("harness/loader.py", also=[modules]) as loader:
            windows = grading.scored_windows(heldout_tokens(job, profile.text), profile.context, profile.heldout_tokens)
            file = tensors.read(job, loader, build, profile.dtype)
            evaluator = stack.enter_context(  # only now: most of what is refused never comes so far
                job.untrusted(
                    "harness/evaluator.py",
                    environment=_ENVIRONMENT,
                    show=False,
                    also=[modules],
                    gpu=gpu.uuid if gpu else None,
                )
            )
            shapes = evaluator.call("build", {**build, "device": job.profile.device}).value
            tensors.hand_over(loader, evaluator, shapes, profile.dtype)
        started = time.monotonic()

        def losses(part: NDArray[np.int64]) -> NDArray[np.float32]:
            size = part[:, 1:].size * np.dtype(np.float32).itemsize
            args = {"length": part.shape[1]}
            reply = evaluator.call("evaluate", args, inputs=[part], outputs=[size], held_out=True)
            return np.frombuffer(reply.outputs[0], np.float32)

        interim = interim_windows(len(windows), f"fix_embedding {job.profile_name} interim windows")
        parts = (windows[interim], windows[~interim])
        loss, final_loss = (grading.mean_loss(losses, part, profile.scoring_batch, job.progress) for part in parts)
    details = {
        "loss": loss,
        "final_loss": final_loss,
        "floor": profile.floor,
        "tokens": windows[:, 1:].size,
        "evaluation_seconds": round(time.monotonic() - started, 3),
        "file": file,
        **({"hardware": gpu.name} if gpu else {}),
    }
    raw, final_raw = (log_above_floor(one, profile.floor) for one in (loss, final_loss))
    message = "the score is ln(loss - floor), on other windows than the final score's"
    return Measured(raw, message, details, final_raw=final_raw)


if __name__ == "__main__":
    main(measure, Path(__file__).parent)
