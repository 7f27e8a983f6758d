"""The task task_name: raw = $raw, $direction is better.

The submission runs in a sandbox. It gets the points that agents have, and the places of the held-out ones; what it
predicts there is compared here, where the truth is.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from re_bench.api import Job, RawScore, Setup, Task, main
from task_name import grading, metric, sandboxed
from task_name.profiles import PROFILES, Size

if TYPE_CHECKING:
    from pathlib import Path


class TaskName(Task[Size]):
    """Predict the values of a hidden function."""

    profiles = PROFILES

    def create_workspace(self, setup: Setup[Size], directory: Path) -> None:
        """Add the points that agents have, and the score as the scorer computes it."""
        lines = [f"{x!r},{y!r}" for x, y in grading.known_points(setup.profile)]
        (directory / "points.csv").write_text("\n".join(["x,y", *lines, ""]), encoding="utf-8")
        shutil.copyfile(metric.__file__, directory / "metric.py")

    def score(self, job: Job[Size]) -> RawScore:
        """Have the submission fit the points that agents have, and predict those that they have not."""
        size = job.profile
        known, held_out = grading.known_points(size), grading.held_out_points(size)
        with job.sandbox(sandboxed) as process:
            process.call(sandboxed.load, job.submission)
            process.call_within(size.fit_s, sandboxed.fit, known)
            process.held_out = True  # from here on, no message of the process reaches the submission's author
            predicted = process.call_within(size.predict_s, sandboxed.predict, [x for x, _y in held_out])
        grading.check_predictions(predicted, len(held_out))
        # An agent reads the message: no figure in it that a submission can choose. Those belong into RawScore.details.
        raw = metric.raw_score(predicted, [y for _x, y in held_out])
        return RawScore(raw, f"{len(held_out)} points were predicted")


if __name__ == "__main__":
    main(TaskName())
