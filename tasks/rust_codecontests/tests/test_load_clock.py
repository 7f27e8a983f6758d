"""The clock that leaves room for load: with real programs on all cores, ours and others'."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from rust_codecontests.load_clock import MOST_SLOWDOWN, CpuTimes, LoadClock

HIDES = """
import signal, subprocess, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
end = time.monotonic() + 1
while time.monotonic() < end:
    subprocess.Popen(["sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"]).wait()
"""


@pytest.mark.usefixtures("busy_machine")
def test_the_clock_stands_while_others_have_the_cores() -> None:
    clock, started = LoadClock(), time.monotonic()
    time.sleep(1)
    seconds, elapsed = clock.seconds(), time.monotonic() - started
    assert elapsed / MOST_SLOWDOWN - 0.1 <= seconds < 0.6 * elapsed
    assert clock.load()["share_of_others"] > 0.5


def test_work_of_our_own_is_no_load_even_where_it_is_hidden() -> None:
    cores = os.sched_getaffinity(0)
    before = CpuTimes.read(cores)
    subprocess.run([sys.executable, "-c", HIDES], check=True)
    after = CpuTimes.read(cores)
    unexplained = after.busy - before.busy - (after.own - before.own)
    assert unexplained > 0.2  # as others' work would be
    assert replace(after, stolen=before.stolen, others=before.others).others_since(before) == 0
