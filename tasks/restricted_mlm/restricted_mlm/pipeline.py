"""From a submission to its loss: one sandbox exports the model, another runs its graph; the labels are here alone."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from re_bench.data.secret import secret_seed
from re_bench.errors import InvalidSubmissionError
from re_bench.guest.refused import RefusedError
from re_bench.scoring.language import interim_windows
from restricted_mlm import grading
from restricted_mlm.profiles import MASKED_SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from re_bench.sandbox.untrusted import Untrusted
    from re_bench.scoring.score import Job
    from restricted_mlm.harness.restricted.graph import Graph
    from restricted_mlm.profiles import Profile

_MAX_BATCH_S = 60.0
_ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Scorer and runner take turns; threads that wait in one must not keep the cores busy that the other needs."""


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


@dataclass(frozen=True)
class _Model:
    """What a submission's process handed over."""

    graph: Graph
    """Read from ``text`` by this process itself."""
    text: str
    tensors: bytes
    """As safetensors, not read here."""


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
    os.environ.update(_ENVIRONMENT)  # before torch is imported
    with job.untrusted("harness/runner.py", show=False, environment=_ENVIRONMENT, gpu=gpu) as runner:
        with job.untrusted("harness/exporter.py", environment=_ENVIRONMENT, gpu=gpu) as exporter:
            model = _export(job, exporter, profile)
        job.progress("checking the model")
        operations = _load(runner, model, profile, "cuda" if gpu else "cpu")
        started = time.monotonic()
        loss, final_loss, positions = _losses(job, runner, profile, tokens)
    seconds = round(time.monotonic() - started, 3)
    return Evaluation(loss, final_loss, positions, model.graph.parameters, len(model.graph.nodes), operations, seconds)


def _export(job: Job, exporter: Untrusted, profile: Profile) -> _Model:
    """Have the submission's model written down, and check what comes."""
    from restricted_mlm.harness.restricted import graph as graphs  # noqa: PLC0415 - imports torch, while the processes do

    job.progress("exporting the model")
    args = {"directory": str(job.submission), "shape": [profile.batch, profile.length]}
    reply = exporter.call("export", args).value
    text, size = (reply.get("graph"), reply.get("bytes")) if isinstance(reply, dict) else (None, None)
    if not isinstance(text, str) or not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise InvalidSubmissionError("the process that exports the model handed over no graph")
    try:
        graph = graphs.parse(text)
    except RefusedError as error:
        raise InvalidSubmissionError(str(error)) from None
    most = profile.max_bytes + graphs.MAX_BYTES  # the header of safetensors is smaller than the graph may be
    if graph.bytes > profile.max_bytes or size > most:
        raise InvalidSubmissionError(
            f"the model's tensors have {graph.bytes:,} bytes; at most {profile.max_bytes:,} are allowed"
        )
    return _Model(graph, text, exporter.call("tensors", outputs=[size]).outputs[0])


def _load(runner: Untrusted, model: _Model, profile: Profile, device: str) -> float:
    """Have the graph and its tensors loaded where they will run; return the operations of a batch."""
    args = {
        "shape": [profile.batch, profile.length],
        "vocabulary": profile.vocabulary,
        "limits": {"elements": profile.max_elements, "operations": profile.max_operations},
        "device": device,
    }
    inputs = [model.text.encode(), model.tensors]
    reply = runner.call("load", args, inputs=inputs, timeout_s=2 * _MAX_BATCH_S).value
    return float(reply["operations"])


def _losses(job: Job, runner: Untrusted, profile: Profile, tokens: NDArray[np.uint16]) -> tuple[float, float, int]:
    """Return the mean cross-entropies of interim and final windows, in nats, and the number of all masked positions."""
    instance = f"restricted_mlm {job.profile_name}"
    windows = tokens[: len(tokens) // profile.length * profile.length].reshape(-1, profile.length)
    parts = grading.batches(
        windows,
        interim_windows(len(windows), f"{instance} interim windows"),
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
