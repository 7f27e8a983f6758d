"""The scorer of restricted_mlm: raw = ln(held-out masked loss - floor), lower is better.

The submission's ``model.py`` is run in a sandbox, where ``torch.export`` turns its model into a list of operators and
tensors (``exporter.py``). This process holds the list to the table of allowed operators; another sandbox, without the
submission, runs it (``runner.py``) and gives the logits of masked positions. The labels are here alone.
"""

from __future__ import annotations

import importlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import heldout
import numpy as np
from profiles import MASKED_SHARE, PROFILES, Profile

from re_bench.errors import InvalidSubmissionError
from re_bench.gpu import state as gpu_state
from re_bench.scoring.language import heldout_tokens, log_above_floor
from re_bench.scoring.score import Job, Measured, main

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from re_bench.sandbox.untrusted import Untrusted

HERE = Path(__file__).parent
SHOWN = (HERE / "restricted",)
"""Of this directory, all that the sandboxes see beside their harness."""
MAX_BATCH_S = 60.0
ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Scorer and runner take turns; threads that wait in one must not keep the cores busy that the other needs."""


@dataclass(frozen=True)
class Model:
    """What a submission's process handed over."""

    graph: Any
    """A :class:`restricted.graph.Graph`, which this process has read by itself."""
    text: str
    tensors: bytes


def measure(job: Job) -> Measured:
    """Export the submission's model in one sandbox, run its graph in another, and compute the loss here."""
    profile = PROFILES[job.profile_name]
    tokens = heldout_tokens(job, profile.text)
    gpu = gpu_state.identify() if job.profile.device == "cuda" else None
    os.environ.update(ENVIRONMENT)  # before torch is imported
    surroundings: dict[str, Any] = {"environment": ENVIRONMENT, "gpu": gpu.uuid if gpu else None}
    with job.untrusted("runner.py", show=False, also=SHOWN, **surroundings) as runner:
        with job.untrusted("exporter.py", also=SHOWN) as exporter:
            model = exported(job, exporter, profile)
        job.progress("checking the model")
        operations = load(runner, model, profile, "cuda" if gpu else "cpu")
        started = time.monotonic()
        loss, positions = evaluate(job, runner, profile, tokens)
    details = {
        "loss": loss,
        "floor": profile.floor,
        "masked_positions": positions,
        "parameters": model.graph.parameters,
        "operators": len(model.graph.nodes),
        "operations_per_batch": operations,
        "evaluation_seconds": round(time.monotonic() - started, 3),
        **({"hardware": gpu.name} if gpu else {}),
    }
    message = (
        f"loss {loss:.4f} at {positions:,} masked positions, {model.graph.parameters:,} parameters, "
        f"{len(model.graph.nodes)} operators; the score is ln(loss - {profile.floor:g})"
    )
    return Measured(log_above_floor(loss, profile.floor), message, details)


def exported(job: Job, exporter: Untrusted, profile: Profile) -> Model:
    """Have the submission's model written down, and check what comes.

    Raises:
        InvalidSubmissionError: if it cannot be written down, or has an operator not in the table of allowed ones.
    """
    # Imports torch, while the processes do.
    graphs, refusal = (importlib.import_module(f"restricted.{name}") for name in ("graph", "refusal"))
    job.progress("exporting the model")
    args = {"code": str(HERE), "directory": str(job.submission), "shape": [profile.batch, profile.length]}
    reply = exporter.call("export", args).value
    text, size = (reply.get("graph"), reply.get("bytes")) if isinstance(reply, dict) else (None, None)
    if not isinstance(text, str) or not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise InvalidSubmissionError("the process that exports the model handed over no graph")
    try:
        graph = graphs.parse(text)
    except refusal.RefusedError as error:
        raise InvalidSubmissionError(str(error)) from None
    most = profile.max_bytes + graphs.MAX_BYTES  # the header of safetensors is smaller than the graph may be
    if graph.bytes > profile.max_bytes or size > most:
        raise InvalidSubmissionError(
            f"the model's tensors have {graph.bytes:,} bytes; at most {profile.max_bytes:,} are allowed"
        )
    return Model(graph, text, exporter.call("tensors", outputs=[size]).outputs[0])


def load(runner: Untrusted, model: Model, profile: Profile, device: str) -> float:
    """Have the graph and its tensors loaded where they will run; return the operations of a batch."""
    args = {
        "code": str(HERE),
        "shape": [profile.batch, profile.length],
        "vocabulary": profile.vocabulary,
        "limits": {"elements": profile.max_elements, "operations": profile.max_operations},
        "device": device,
    }
    found = runner.call("load", args, inputs=[model.text.encode(), model.tensors]).value
    return float(found["operations"])


def evaluate(job: Job, runner: Untrusted, profile: Profile, tokens: NDArray[np.uint16]) -> tuple[float, int]:
    """Return the mean cross-entropy over all masked positions, in nats, and their number.

    Raises:
        InvalidSubmissionError: if a logit is not finite.
    """
    shape = (profile.batch, profile.length)
    batches = heldout.batches(tokens, *shape, random=profile.batches, mask_id=profile.mask_id, share=MASKED_SHARE)
    number = heldout.count(tokens, *shape, profile.batches)
    total, positions = 0.0, 0
    for index, batch in enumerate(batches, 1):
        job.progress(f"batch {index} of {number}")
        size = batch.positions.size * profile.vocabulary * 4
        given = [batch.tokens, batch.positions]
        reply = runner.call("run", {"shape": list(shape)}, inputs=given, outputs=[size], timeout_s=MAX_BATCH_S)
        logits = np.frombuffer(reply.outputs[0], np.float32).reshape(batch.positions.size, profile.vocabulary)
        if not np.isfinite(logits).all():
            raise InvalidSubmissionError(f"the model gives logits that are not finite (in batch {index} of {number})")
        total += float(heldout.cross_entropy(logits, batch.labels).sum())
        positions += batch.positions.size
    return total / positions, positions


if __name__ == "__main__":
    main(measure, HERE)
