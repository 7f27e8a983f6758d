"""Score restricted_mlm: raw = ln(held-out masked loss - floor), with the loss in nats; lower is better.

One sandbox runs the submission and exports its model as a list of allowed operators. A second sandbox, without the
submission's code, checks and runs the list. Only the scorer's process has the labels.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from re_bench.api import Job, RawScore, Setup, Task, main
from re_bench.scoring.language import at_floor, heldout_tokens, log_above_floor
from restricted_mlm import grading, workspace
from restricted_mlm.profiles import PROFILES, Profile
from restricted_mlm.sandboxed import exporter, runner

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

BATCH_S = 60.0
"""Time limit for each batch, in seconds; reading the model may take twice as long."""


class RestrictedMLM(Task[Profile]):
    """Train a masked language model whose forward pass uses only a few allowed operations."""

    profiles = PROFILES

    def prepare(self, setup: Setup[Profile]) -> None:
        """Prepare the profile's text and train the starting model, unless they exist."""
        workspace.prepare(setup)

    def create_workspace(self, setup: Setup[Profile], directory: Path) -> None:
        """Add the text, the modules, the weights and ``profile.json``."""
        workspace.create(setup, directory)

    def score(self, job: Job[Profile]) -> RawScore:
        """Export the submission's model as a list of allowed operators, and compute the loss of that list."""
        profile, gpu, shape = job.profile, job.gpu(), [job.profile.batch, job.profile.length]
        public, private = grading.heldout_batches(profile, heldout_tokens(job, profile.text), job.profile_name)
        with job.sandbox(exporter, gpu=gpu.uuid) as untrusted:
            job.progress("exporting the model")
            model = untrusted.call(exporter.export, job.submission, shape)
            grading.check_size(model.size, profile)
            tensors = untrusted.call(exporter.tensors, model.size)
        with job.sandbox(runner, submission=False, gpu=gpu.uuid) as process:
            limits = (profile.max_elements, profile.max_operations, profile.max_bytes)
            wanted = runner.Model(shape, profile.vocabulary, *limits, device=job.settings.device)
            figures = process.call_within(2 * BATCH_S, runner.load, model.graph.encode(), tensors, wanted)
            process.held_out, started = True, time.monotonic()

            def logits(batch: grading.Batch) -> NDArray[np.float32]:
                return process.call_within(BATCH_S, runner.logits, batch.tokens, batch.positions, profile.vocabulary)

            losses = [grading.mean_loss(logits, part, job.progress) for part in (public, private)]
        details = {
            "loss": losses[0],
            "final_loss": losses[1],
            "floor": profile.floor,
            "masked_positions": sum(batch.positions.size for batch in public + private),
            "parameters": figures.parameters,
            "operators": figures.operators,
            "operations_per_batch": figures.operations,
            "evaluation_seconds": round(time.monotonic() - started, 3),
            **gpu.details,
            **at_floor(losses, profile.floor),
        }
        raw, final = (log_above_floor(each, profile.floor) for each in losses)
        message = f"the score is ln(loss - {profile.floor:g}), on other windows than the final score's"
        return RawScore(raw, message, details, private=final)


if __name__ == "__main__":
    main(RestrictedMLM())
