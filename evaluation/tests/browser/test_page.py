from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from made_up_report import made_up_report
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from re_bench_evaluation.report.page import render

if TYPE_CHECKING:
    from pathlib import Path

    from chromium import Browser

pytestmark = pytest.mark.browser

_NARROW = 320


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(made_up_report()), encoding="utf-8")
    return path


def _open_first_run(browser: Browser) -> str:
    browser.driver.find_element(By.CSS_SELECTOR, "#runs-table tr.run summary").send_keys(Keys.ENTER)
    text: str = browser.driver.find_element(By.CSS_SELECTOR, "#runs-table tr.attempts td").text
    return text


def test_no_requests_or_console_messages(browser: Browser, report: Path) -> None:
    for dark, width, media in ((False, 1280, ""), (True, 1280, ""), (False, _NARROW, ""), (False, 800, "print")):
        browser.open(report, dark=dark, width=width, media=media)
        _open_first_run(browser)
        assert browser.console() == []
        assert browser.requests() == [report.as_uri()]


def test_runs_open_by_keyboard(browser: Browser, report: Path) -> None:
    browser.open(report)
    cell = browser.driver.find_element(By.CSS_SELECTOR, "#runs-table tr.attempts td")
    assert not cell.is_displayed()
    assert "Execute Script" not in _open_first_run(browser)
    assert cell.is_displayed()
    assert "Attempts" in cell.text
    cell.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert "solution.py added" in cell.text
    assert "Execute Script" in cell.text
    assert cell.find_elements(By.TAG_NAME, "ins")


@pytest.mark.parametrize("width", [_NARROW, 1280])
def test_page_does_not_scroll_sideways(browser: Browser, report: Path, width: int) -> None:
    browser.open(report, width=width)
    browser.run("document.querySelectorAll('details').forEach(details => { details.open = true })")
    assert browser.run("return document.documentElement.scrollWidth") <= width


def test_page_works_without_javascript(browser: Browser, report: Path) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(report)
        browser.driver.find_element(By.CSS_SELECTOR, "#runs-table tr.run summary").click()
        cell = browser.driver.find_element(By.CSS_SELECTOR, "#runs-table tr.attempts td")
        assert cell.is_displayed()
        cell.find_element(By.TAG_NAME, "summary").click()
        assert "Execute Script" in cell.text
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_accessible_names(browser: Browser, report: Path) -> None:
    browser.open(report)
    _open_first_run(browser)
    nameless = """
    const all = selector => [...document.querySelectorAll(selector)];
    const ids = all("[id]").map(element => element.id);
    return {
        tables: all("table").filter(table => !table.caption?.textContent.trim()).length,
        headers: all("th").filter(cell => !cell.scope || !cell.textContent.trim()).length,
        figures: all("img").filter(image => !image.alt).length,
        lost: all("a[href^='#']").filter(link => !ids.includes(link.getAttribute("href").slice(1))).length,
        twice: ids.filter((id, index) => ids.indexOf(id) !== index),
        regions: all(".scroll").filter(region => region.tabIndex !== 0 || !region.ariaLabel).length,
    }"""
    empty = {"tables": 0, "headers": 0, "figures": 0, "lost": 0, "twice": [], "regions": 0}
    assert browser.run(nameless) == empty


def test_a_page_of_1000_runs_is_fast_and_small(browser: Browser, tmp_path: Path) -> None:
    data, path = made_up_report(tasks=5, runs=50, attempts=20, agents=4), tmp_path / "report.html"
    began = time.process_time()
    path.write_text(render(data), encoding="utf-8")
    seconds = time.process_time() - began
    assert path.stat().st_size <= 10_500_000
    browser.open(path)
    usable = browser.run("return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd / 1000")
    assert _open_first_run(browser).count("valid") >= 20
    assert browser.console() == []
    assert seconds <= 20
    assert usable <= 4
