"""Test time limits on a machine that is busy with other programs."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from re_bench.limits import Limits
from re_bench.sandbox.process import run
from re_bench.sandbox.spec import SandboxSpec
from re_bench.time_limits import CPU_PRESSURE, MAX_STRETCH, TimeLimit

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench.sandbox.spec import Backend

SECONDS = 0.2


def write_pressure(path: Path, seconds: float) -> None:
    path.write_text(f"some avg10=0.00 avg60=0.00 avg300=0.00 total={seconds * 1e6:.0f}\nfull avg10=0.00 total=9\n")


@pytest.mark.unit
@pytest.mark.parametrize("pressure", [True, False])
def test_a_limit_is_its_seconds_on_an_idle_machine(tmp_path: Path, *, pressure: bool) -> None:
    path = tmp_path / "pressure"
    if pressure:
        write_pressure(path, 50.0)
    limit = TimeLimit(SECONDS, pressure=path)
    assert not limit.reached
    assert 0 < limit.remaining_s <= SECONDS
    time.sleep(SECONDS)
    assert limit.reached
    assert limit.describe(1.0) == "0.2 s"


@pytest.mark.unit
def test_time_in_which_programs_wait_for_a_core_does_not_count_up_to_a_bound(tmp_path: Path) -> None:
    path = tmp_path / "pressure"
    write_pressure(path, 50.0)
    limit = TimeLimit(SECONDS, pressure=path)
    time.sleep(2 * SECONDS)
    write_pressure(path, 50.0 + 1.5 * SECONDS)
    assert not limit.reached
    write_pressure(path, 1e6)
    assert not limit.reached
    time.sleep(MAX_STRETCH * SECONDS - limit.elapsed_s)
    assert limit.reached
    assert limit.describe(3.2) == "0.2 s (it took 2 s of wall-clock time with 3 s of CPU time; the machine was busy)"


@pytest.mark.integration
@pytest.mark.skipif(not CPU_PRESSURE.exists(), reason="this kernel does not report CPU pressure")
def test_a_program_reaches_its_end_beside_other_programs(backend: Backend) -> None:
    work = "import time\nwhile time.process_time() < 1.0: pass\nprint('done')"
    spin = [sys.executable, "-c", "while True: pass"]
    with ExitStack() as stack:
        for _number in range(8):
            process = stack.enter_context(subprocess.Popen(spin, start_new_session=True))
            stack.callback(process.kill)
        finished = run(backend, [backend.python, "-c", work], SandboxSpec(limits=Limits(wall_s=2.0)))
    assert (finished.status, finished.stdout) == (0, "done\n"), finished.stopped
    assert finished.seconds > 2.0
