from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from evaluation_factory import TASKS, Shape, make_evaluation
from hostile import HOSTILE

from re_bench.attempts.log import AttemptLog
from re_bench.records import RunRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from chromium import Browser

pytestmark = pytest.mark.browser
_REFRESH_S = 15
_TEXT = "return document.getElementById('runs-table').textContent"


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    evaluation = make_evaluation(tmp_path / "evaluation", shape=Shape(tasks=TASKS[:1], runs=1, attempts=2))
    for run in (evaluation / "runs").iterdir():
        RunRecord.load(run).model_copy(update={"state": "running"}).save(run)
    return evaluation


@pytest.fixture
def server(evaluation: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the address that it prints."""
    command = [sys.executable, "-m", "re_bench.cli", "view", str(evaluation)]
    env = os.environ | {"RE_BENCH_CACHE": str(evaluation.with_name("cache"))}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    address = next(word for word in process.stdout.readline().split() if word.startswith("http://"))
    yield process, address
    process.kill()
    process.communicate()


def _wait(condition: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def _hand_in(evaluation: Path, message: str) -> None:
    log = AttemptLog(next(evaluation.glob("runs/*model-a*/server/sessions/*/attempts.jsonl")))
    last = log.read().attempts[-1]
    log.append(replace(last, n=0, status="invalid", raw=None, reward=None, message=message))


def test_page_reloads_while_runs_are_active_and_nothing_is_open(
    browser: Browser, evaluation: Path, server: tuple[subprocess.Popen[str], str]
) -> None:
    process, address = server
    browser.open(address)
    summary = "#runs-table > tbody:first-of-type > tr.run summary"
    browser.run(f"document.querySelector('{summary}').click()")
    _hand_in(evaluation, HOSTILE["handler"])
    time.sleep(_REFRESH_S + 1)
    assert "3 attempts" not in browser.run(_TEXT), "what is open stays"
    browser.run(f"document.querySelector('{summary}').click()")
    _wait(lambda: "3 attempts" in browser.run(_TEXT))
    browser.run("document.querySelectorAll('details').forEach(details => { details.open = true })")
    assert HOSTILE["handler"] in browser.run(_TEXT)
    assert browser.console() == []
    assert not browser.run("return 'ran' in window")
    paths = {asked.removeprefix(address) for asked in browser.requests()}
    assert paths <= {"", "favicon.ico"}
    process.send_signal(signal.SIGINT)
    _output, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (130, "")
