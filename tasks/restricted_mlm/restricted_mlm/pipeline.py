"""From a submission to its loss: one sandbox exports the model, another runs its graph; the labels are here alone.

This process imports no torch, and reads neither graph nor tensors: the second sandbox, where no code of the submission
is, holds them to the table of operators. It is started for a model that was exported, as most that are refused are not.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from re_bench.data.instances import secret_seed
from re_bench.errors import InvalidSubmissionError
from re_bench.scoring.language import public_windows
from restricted_mlm import grading
from restricted_mlm.profiles import MASKED_SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from re_bench.sandbox.untrusted import Untrusted
    from re_bench.scoring.score import Job
    from restricted_mlm.profiles import Profile

_MAX_BATCH_S = 60.0
_MAX_HEADER_BYTES = 3 << 20
"""Of the tensors as safetensors, beside their values."""
_ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads that wait for each other leave the cores to other processes."""


@dataclass(frozen=True)
class Evaluation:
    """What came out for one submission."""

    loss: float
    """The mean cross-entropy, in nats, over the masked positions of the windows for interim answers."""
    final_loss: float
    """The same of the windows for the final score."""
    positions: int
    """How many masked positions there are in all windows."""
    parameters: int
    operators: int
    operations: float
    """Of one batch; ``harness/restricted/plan.py`` says what counts as one."""
    seconds: float
    """That running the graph on all batches took."""


def evaluate(job: Job, profile: Profile, tokens: NDArray[np.uint16], gpu: str | None) -> Evaluation:
    """Export the submission's model in one sandbox, run its graph in another, and compute the loss here.

    Args:
        job: the submission.
        profile: sizes and limits.
        tokens: the held-out text.
        gpu: UUID of the GPU to run the graph on; None for the CPU.

    Raises:
        InvalidSubmissionError: if the model cannot be exported, is refused, or gives logits that are not finite.
    """
    with job.untrusted("harness/exporter.py", environment=_ENVIRONMENT, gpu=gpu) as exporter:
        graph, tensors = _export(job, exporter, profile)
    job.progress("checking the model")
    with job.untrusted("harness/runner.py", show=False, environment=_ENVIRONMENT, gpu=gpu) as runner:
        figures = _load(runner, graph, tensors, profile, "cuda" if gpu else "cpu")
        started = time.monotonic()
        loss, final_loss, positions = _losses(job, runner, profile, tokens)
    return Evaluation(loss, final_loss, positions, **figures, seconds=round(time.monotonic() - started, 3))


def _export(job: Job, exporter: Untrusted, profile: Profile) -> tuple[bytes, bytes]:
    """Have the submission's model written down; return its graph as JSON and its tensors as safetensors."""
    job.progress("exporting the model")
    args = {"directory": str(job.submission), "shape": [profile.batch, profile.length]}
    reply = exporter.call("export", args).value
    text, size = (reply.get("graph"), reply.get("bytes")) if isinstance(reply, dict) else (None, None)
    if not isinstance(text, str) or not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise InvalidSubmissionError("the process that exports the model handed over no graph")
    if size > profile.max_bytes + _MAX_HEADER_BYTES:
        raise InvalidSubmissionError(
            f"the model's tensors have {size:,} bytes; at most {profile.max_bytes:,} are allowed"
        )
    return text.encode("utf-8", "surrogatepass"), exporter.call("tensors", outputs=[size]).outputs[0]


def _load(runner: Untrusted, graph: bytes, tensors: bytes, profile: Profile, device: str) -> dict[str, Any]:
    """Have graph and tensors checked and loaded where they will run; return what :class:`Evaluation` has of them."""
    args = {
        "shape": [profile.batch, profile.length],
        "vocabulary": profile.vocabulary,
        "limits": {"elements": profile.max_elements, "operations": profile.max_operations},
        "bytes": profile.max_bytes,
        "device": device,
    }
    figures: dict[str, Any] = runner.call("load", args, inputs=[graph, tensors], timeout_s=2 * _MAX_BATCH_S).value
    return figures


def _losses(job: Job, runner: Untrusted, profile: Profile, tokens: NDArray[np.uint16]) -> tuple[float, float, int]:
    """Return the mean cross-entropies of interim and final windows, in nats, and the number of all masked positions."""
    instance = f"restricted_mlm {job.profile_name}"
    windows = tokens[: len(tokens) // profile.length * profile.length].reshape(-1, profile.length)
    parts = grading.batches(
        windows,
        public_windows(len(windows), f"{instance} interim windows"),
        profile.batch,
        most=profile.batches,
        mask_id=profile.mask_id,
        share=MASKED_SHARE,
        seed=secret_seed(f"{instance} order and masks"),
    )
    (loss, positions), (final_loss, final_positions) = (_loss(job, runner, profile, part) for part in parts)
    return loss, final_loss, positions + final_positions


def _loss(job: Job, runner: Untrusted, profile: Profile, batches: Sequence[grading.Batch]) -> tuple[float, int]:
    """Return the mean cross-entropy over the masked positions of ``batches``, in nats, and their number."""
    total, positions = 0.0, 0
    for index, batch in enumerate(batches, 1):
        job.progress(f"batch {index} of {len(batches)}")
        size, inputs = batch.positions.size * profile.vocabulary * 4, [batch.tokens, batch.positions]
        args = {"shape": list(batch.tokens.shape)}
        reply = runner.call("run", args, inputs=inputs, outputs=[size], timeout_s=_MAX_BATCH_S, held_out=True)
        logits = np.frombuffer(reply.outputs[0], np.float32).reshape(batch.positions.size, profile.vocabulary)
        if not np.isfinite(logits).all():  # which batch it was, held-out tokens decide
            raise InvalidSubmissionError("the model gives logits that are not finite")
        total += float(grading.cross_entropy(logits, batch.labels).sum())
        positions += batch.positions.size
    return total / positions, positions
