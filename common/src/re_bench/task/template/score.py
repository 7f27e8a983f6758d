"""The scorer of task_name: raw = $raw, $direction is better.

The submission runs in a sandbox (``harness/fitter.py``). It is given the points that agents have, and the places of the
held-out ones; what it predicts there is compared here, where the truth is.
"""

from __future__ import annotations

from pathlib import Path

from re_bench.scoring.score import Job, Measured, main
from task_name import grading
from task_name.metric import raw_score
from task_name.profiles import PROFILES


def measure(job: Job) -> Measured:
    """Have the submission fit the points that agents have, and predict those that they have not."""
    size = PROFILES[job.profile_name]
    held_out = grading.held_out_points(size)
    with job.untrusted("harness/fitter.py") as process:
        process.call("load", {"directory": str(job.submission)})
        process.call("fit", {"points": grading.known_points(size)}, timeout_s=size.fit_s)
        places = {"inputs": [x for x, _y in held_out]}
        answer = process.call("predict", places, timeout_s=size.predict_s, held_out=True).value
    predicted = grading.checked_predictions(answer, len(held_out))
    # An agent reads this line: no figure in it that a submission can choose. Those belong into Measured.details.
    return Measured(raw_score(predicted, [y for _x, y in held_out]), f"{len(held_out)} points were predicted")


if __name__ == "__main__":
    main(measure, Path(__file__).parent)
