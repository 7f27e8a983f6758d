"""What ``measure_clock.py`` makes of scores, whatever the submission said of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from re_bench.data.files import import_file

measure_clock = import_file(Path(__file__).parents[1] / "tools" / "measure_clock.py", "triton_cumsum_measure_clock")


def scored(claimed_ms: float | None) -> dict[str, Any]:
    time = {"milliseconds": 0.25}
    return {
        "status": "valid",
        "reward": 1.0,
        "seconds": 20.0,
        "details": {
            "clock_ms": {"submission": 0.26, "reference": 0.25},
            "claimed_ms": claimed_ms,
            "times": {"baseline": time, "reference": time},
            "control_ms": 2.0,
            "controls_ms": {"alone": [2.0], "beside": [2.0]},
            "calls": {},
            "phases_s": {"waiting for the GPU": 9.0, "starting": 1.0, "check": 6.0, "turns": 4.0},
            "turn_steps_s": {"ours": {"check": 0.12345}},
            "gpu_after": {},
        },
    }


@pytest.mark.parametrize(("claimed_ms", "ratio"), [(0.25, 1.04), (0.0, None), (None, None)])
def test_a_claim_that_is_no_time_is_compared_with_nothing(claimed_ms: float | None, ratio: float | None) -> None:
    line = measure_clock.summary(scored(claimed_ms))
    assert (line["reward"], line["clock_over_events"]) == (1.0, ratio)
    assert (line["locked_s"], line["beyond_compiling_s"]) == (11.0, 5.0)


def test_an_invalid_score_is_told_with_its_reason() -> None:
    invalid = {"status": "invalid", "message": "late", "seconds": 3.0, "reward": None, "details": {}}
    assert measure_clock.summary(invalid) == {"status": "invalid", "message": "late", "seconds": 3.0}
