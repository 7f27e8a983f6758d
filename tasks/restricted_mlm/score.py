"""The scorer of restricted_mlm: raw = ln(held-out masked loss - floor), losses in nats, lower is better."""

from __future__ import annotations

from pathlib import Path

from re_bench.gpu import state as gpu_state
from re_bench.scoring.language import heldout_tokens, log_above_floor
from re_bench.scoring.score import Job, Measured, main
from restricted_mlm import pipeline
from restricted_mlm.profiles import PROFILES


def measure(job: Job) -> Measured:
    """Export the submission's model as a list of allowed operators, and compute the loss of what the list gives."""
    profile = PROFILES[job.profile_name]
    tokens = heldout_tokens(job, profile.text)
    gpu = gpu_state.identify() if job.profile.device == "cuda" else None
    result = pipeline.evaluate(job, profile, tokens, gpu.uuid if gpu else None)
    details = {
        "loss": result.loss,
        "final_loss": result.final_loss,
        "floor": profile.floor,
        "masked_positions": result.positions,
        "parameters": result.parameters,
        "operators": result.operators,
        "operations_per_batch": result.operations,
        "evaluation_seconds": result.seconds,
        **({"hardware": gpu.name} if gpu else {}),
    }
    raw, final_raw = (log_above_floor(loss, profile.floor) for loss in (result.loss, result.final_loss))
    message = f"the score is ln(loss - {profile.floor:g}), on other windows than the final score's"
    return Measured(raw, message, details, final_raw=final_raw)


if __name__ == "__main__":
    main(measure, Path(__file__).parent)
