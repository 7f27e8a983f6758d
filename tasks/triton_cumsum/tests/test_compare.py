"""The page of the task shows the data of the comparison, and the comparison counts right."""

from __future__ import annotations

import json
from pathlib import Path

from re_bench.data.files import import_file

TASK = Path(__file__).parents[1]
compare = import_file(TASK / "tools" / "compare.py", "triton_cumsum_compare")


def test_the_page_shows_the_data_that_lie_beside_it() -> None:
    docs = TASK.parents[1] / "docs" / "tasks"
    data = [json.loads((docs / "triton_cumsum" / f"{name}.json").read_text()) for name in ("modelled", "measured")]
    modelled, measured = (entry["milliseconds"] for entry in data)
    page = (docs / "triton_cumsum.md").read_text()
    assert compare.markdown(modelled, measured) in page
    assert compare.summary(modelled, measured) in page


def test_ranks_and_the_worst_ratio() -> None:
    modelled, measured = {"reference": 1.0, "baseline": 2.0, "three_pass": 3.0}, {"reference": 3.0, "baseline": 2.0}
    text = compare.summary(modelled, measured)
    assert text == "worst ratio 3.00 (`reference`), rank correlation -1.00"
