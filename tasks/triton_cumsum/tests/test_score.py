"""What the scorer says of good, wrong, crashing and hanging solutions."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from re_bench.data.files import import_file
from re_bench.scoring.score import main
from triton_cumsum.profiles import CPU

pytestmark = pytest.mark.integration

TASK = Path(__file__).resolve().parents[1]
scorer = import_file(TASK / "score.py", "triton_cumsum_score")
FIELDS = ["task", "profile", "status", "raw", "reward", "message", "details", "seconds"]

CASES = {
    "raises": ("def prefix_sum(x):\n    raise RuntimeError('no idea')\n", "no idea"),
    "does not import": ("import nowhere\n", "nowhere"),
    "no function": ("y = 1\n", "defines no function prefix_sum"),
    "null bytes": ("\0" * 9, "null bytes"),
    "odd reason": ("raise Exception('\\ud800\\x1b[2J\\0')\n", "imported: Exception"),
    "leaves": ("import os\ndef prefix_sum(x):\n    os._exit(0)\n", "exit status 0"),
    "crashes": ("import os\ndef prefix_sum(x):\n    os.kill(os.getpid(), 11)\n", "signal 11"),
    "wrong": ("def prefix_sum(x):\n    return x.cumsum(0).to(x.dtype)\n", "first at index 0"),
    "wrong dtype": ("def prefix_sum(x):\n    return x.cumsum(0)\n", "dtype"),
    "wrong shape": ("def prefix_sum(x):\n    return x[:0].clone()\n", "shape"),
    "aliases": ("def prefix_sum(x):\n    return x\n", "memory of its input"),
    "not a tensor": ("def prefix_sum(x):\n    return x.tolist()\n", "list"),
    "prints a gigabyte": (
        "import os\ndef prefix_sum(x):\n    for _ in range(1024): os.write(1, b'x' * (1 << 20))\n    return x\n",
        "memory of its input",
    ),
    "forks": (
        "import os, time\ndef prefix_sum(x):\n    while True:\n        if os.fork() == 0: time.sleep(999.25)\n",
        "MiB of memory|Resource temporarily unavailable",
    ),
}

QUICK = ("wrong",)
"""The cases that are always tried; the cheats and the tests of sandboxes and of the recorder try the others."""


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    (tmp_path / "submission").mkdir()
    return tmp_path / "submission"


@pytest.fixture
def scored(submission: Path, capfd: pytest.CaptureFixture[str]) -> Any:
    """Return a function that scores a source by the real scorer in this process; it returns status, output, errors."""

    def run(source: str) -> tuple[object, str, str]:
        (submission / "solution.py").write_text(source)
        with pytest.raises(SystemExit) as end:
            main(scorer.TritonCumsum(), ["--solution", str(submission), "--profile", "cpu", "--json"])
        return end.value.code, *capfd.readouterr()

    return run


def check(stdout: str, status: str) -> dict[str, Any]:
    result = json.loads(stdout)
    assert isinstance(result, dict)
    assert list(result) == FIELDS
    assert (result["task"], result["profile"], result["status"]) == ("triton_cumsum", "cpu", status)
    assert isinstance(result["details"], dict)
    assert result["details"]["sandbox"] == "bubblewrap"
    assert result["seconds"] > 0
    return result


@pytest.mark.slow  # the reference; nox -s score and the contract's test of the baseline show the same
def test_a_good_submission_is_valid_where_six_programs_share_its_core(
    scored: Any, submission: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(scorer.TritonCumsum.profiles, "cpu", replace(CPU, call_s=4.0))  # alone, it takes 1.5 s to 2 s
    source = (TASK / "reference" / "solution.py").read_text()
    cores = os.sched_getaffinity(0)
    with ExitStack() as stack:
        stack.callback(os.sched_setaffinity, 0, cores)
        os.sched_setaffinity(0, {min(cores)})
        for _number in range(6):
            other = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(other.kill)
        code, stdout, stderr = scored(source)
    assert code == 0, stderr
    result = check(stdout, "valid")
    assert math.isfinite(result["raw"])
    assert math.isfinite(result["reward"])
    assert "modelled" in result["message"]
    assert {path.name: path.read_text() for path in submission.rglob("*")} == {"solution.py": source}


@pytest.mark.parametrize(
    "case", [case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in CASES]
)
def test_a_bad_submission_is_invalid_with_its_reason(scored: Any, case: str) -> None:
    source, reason = CASES[case]
    code, stdout, stderr = scored(source)
    assert code == 3, stderr
    result = check(stdout, "invalid")
    assert (result["raw"], result["reward"]) == (None, None)
    assert re.search(reason, result["message"])
    assert "Traceback" not in result["message"]


def test_a_hanging_submission_is_stopped_and_leaves_nothing(scored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(scorer.TritonCumsum.profiles, "cpu", replace(CPU, call_s=2.0))
    source = "import subprocess, time\nsubprocess.Popen(['sleep', '777.25'])\ndef prefix_sum(x):\n    time.sleep(999)\n"
    code, stdout, _stderr = scored(source)
    assert (code, check(stdout, "invalid")["message"]) == (
        3,
        "the call of record took longer than 2 s",
    )
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "777.25" not in listing
    assert "999.25" not in listing
