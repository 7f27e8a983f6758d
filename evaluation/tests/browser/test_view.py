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
from selenium.webdriver.common.by import By

from re_bench.runs.attempts import AttemptLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from chromium import Browser

pytestmark = pytest.mark.browser


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    return make_evaluation(tmp_path / "evaluation", shape=Shape(tasks=TASKS[:1], runs=1, attempts=2))


@pytest.fixture
def server(evaluation: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the address that it prints."""
    command = [sys.executable, "-m", "re_bench.cli", "view", str(evaluation)]
    env = os.environ | {"RE_BENCH_CACHE": str(evaluation.with_name("cache"))}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    address = process.stdout.readline().split()[0]
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


def test_attempts_appear_as_they_arrive(
    browser: Browser, evaluation: Path, server: tuple[subprocess.Popen[str], str]
) -> None:
    browser.open(server[1])
    row = "//table[@id='runs-table']/tbody[contains(., 'model-a')]"
    _wait(lambda: "Waiting for attempts" in browser.driver.find_element(By.ID, "live").text)
    browser.driver.find_element(By.XPATH, f"{row}//summary").click()
    _wait(lambda: len(browser.driver.find_elements(By.XPATH, f"{row}//th[@scope='row' and @class='n']")) == 2)
    _hand_in(evaluation, HOSTILE["handler"])
    _wait(lambda: "1 new attempt" in browser.driver.find_element(By.ID, "live").text)
    _wait(lambda: HOSTILE["handler"] in browser.driver.find_element(By.XPATH, row).text)  # the run is still open
    assert browser.console() == []
    assert not browser.run("return 'ran' in window")
    paths = {address.removeprefix(server[1]).split("?")[0] for address in browser.requests()}
    assert paths <= {"", "events", "favicon.ico"}
    browser.driver.find_element(By.LINK_TEXT, "Load the page again for new figures").click()
    _wait(lambda: "3 attempts" in browser.driver.find_element(By.XPATH, row).text)


def test_ctrl_c_ends_it_while_a_page_is_open(browser: Browser, server: tuple[subprocess.Popen[str], str]) -> None:
    process, address = server
    browser.open(address)
    _wait(lambda: "Waiting" in browser.driver.find_element(By.ID, "live").text)
    process.send_signal(signal.SIGINT)
    _output, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (130, "")
    _wait(lambda: "connection is lost" in browser.driver.find_element(By.ID, "live").text)
