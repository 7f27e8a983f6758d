from __future__ import annotations

from pathlib import Path

from re_bench.errors import InvalidSubmissionError
from re_bench.scoring.score import Job, Measured, main


def measure(job: Job) -> Measured:
    try:
        return Measured(float((job.submission / "number").read_text()), "fine")
    except ValueError:
        raise InvalidSubmissionError("that is no number") from None


if __name__ == "__main__":
    main(measure, Path(__file__).parent)
