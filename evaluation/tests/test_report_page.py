"""Test the HTML page of a report and its server."""

from __future__ import annotations

import base64
import hashlib
import http.client
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from evaluation_factory import TASKS, Shape, make_evaluation
from hostile import HOSTILE, poison
from made_up_report import made_up_report

from re_bench.errors import UsageError
from re_bench_evaluation.report.page import render, visible, write_page
from re_bench_evaluation.report.plots import COLOURS, run_line, unit_of
from re_bench_evaluation.report.view import LivePage, serving

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from re_bench_evaluation.report.data import ReportData

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def page() -> str:
    """Return the page of the report that is made up."""
    return render(made_up_report())


def images(page: str) -> list[str]:
    """Return the SVG figures of a page."""
    addresses = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]*)"', page)
    return [base64.b64decode(address).decode() for address in addresses]


def test_content_security_policy(page: str) -> None:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    style, script = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for tag in ("style", "script")
        for text in re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    )
    assert policy[1].replace("&#39;", "'").split("; ") == [
        "default-src 'none'", "img-src data:", f"style-src 'sha256-{style}'", f"script-src 'sha256-{script}'",
        "base-uri 'none'", "form-action 'none'",
    ]  # fmt: skip


def test_page_references_no_urls(page: str) -> None:
    assert re.findall(r"[a-z]+://[^\s\"<]*", page) == []
    assert {address[:5] for address in re.findall(r'(?:src|href)="([^#"]*)', page) if address} == {"data:"}


def test_sections_and_flags(page: str) -> None:
    for text in (
        "Leaderboard",
        "Expected best",
        "Best so far",
        "Cost",
        "all runs",
        "Files that could not be read",
        "no run.json",
    ):
        assert text.lower() in page.lower()
    assert page.count("raw scores are modelled, not measured") >= 4
    assert page.count("a stand-in replaces the model") >= 3
    for text in (
        "Execute Script",
        "solution.py",
        "<ins>",
        "anchors measured by the test",
        "0.1 -&gt; 1.0",
    ):
        assert text in page


def test_figures_contain_no_untrusted_text() -> None:
    page = render(poison(made_up_report(), HOSTILE["script"]))
    figures = images(page)
    assert len(figures) == 2 + 2 * 2 + 1
    assert sum("wall-clock time" in figure for figure in figures) == 3
    assert not any("window.ran" in figure for figure in figures)


def test_names_match_the_colours_of_lines(page: str) -> None:
    for number, colour in enumerate(COLOURS):
        assert f".k{number} {{ color: {colour}; }}" in page
        assert number > 2 or any(colour in figure for figure in images(page))


def test_empty_report() -> None:
    data = made_up_report(runs=0)
    nothing = replace(data, evaluations=(), tasks=(), leaderboards=(), cells=(), budgets=(), runs=(), problems=())
    assert "No finished runs" in render(nothing)
    assert "0 runs" in render(data)


def test_runs_without_times_or_rewards() -> None:
    data = made_up_report(tasks=1, runs=1, attempts=2)
    runs = [
        replace(
            run, wall_s=None, working_s=None, dollars=None, reward=None, raw=None, counted=None, state="running",
            attempts=tuple(replace(a, wall_s=None, working_s=None, so_far=None, reward=None) for a in run.attempts),
        )
        for run in data.runs
    ]  # fmt: skip
    cells = tuple(replace(cell, curves=()) for cell in data.cells)
    page = render(replace(data, runs=tuple(runs), cells=cells, budgets=(), leaderboards=()))
    assert "the times of the attempts are unknown" in page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("a\x00b\u202ec", "a\\x00b\\u202ec"),
        ("\ud800", "\\ud800"),
        ("e\u0301" + "\u0301" * 50, "e\u0301\u0301\u0301"),
        ("\U000e0041", "\\U000e0041"),
        (3, 3),
    ],
)
def test_misleading_characters_are_escaped(text: object, shown: object) -> None:
    assert visible(text) == shown


def test_line_of_a_run() -> None:
    (run,) = made_up_report(tasks=1, runs=1, attempts=3, agents=1).runs
    rewards = (None, 0.5, 0.5)
    attempts = (
        replace(one, wall_s=3600.0 * one.n, so_far=reward) for one, reward in zip(run.attempts, rewards, strict=True)
    )
    assert run_line(replace(run, wall_s=4 * 3600.0, attempts=tuple(attempts)), "wall") == ([0, 2, 4], [0, 0.5, 0.5])
    assert [unit_of(hours)[0] for hours in (8.0, 0.5, 0.01)] == ["hours", "minutes", "seconds"]


def test_unwritable_page(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        write_page(made_up_report(runs=0), tmp_path / "none" / "report.html")


def test_command_writes_page(tmp_path: Path, re_bench: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    hostile = "<script>alert(1)</script>"
    shape = Shape(tasks=TASKS[:1], runs=1, attempts=4, messages=(hostile,), sources=(f"a = '{hostile}'\n", "b = 2\n"))
    evaluation = make_evaluation(tmp_path / "evaluation", hostile, shape)
    done = re_bench("report", evaluation, "--out", tmp_path / "report.html")
    assert (done.returncode, done.stdout) == (0, "")
    page = (tmp_path / "report.html").read_text()
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 10
    assert hostile not in page


class Changing:
    """Reads a report that a test changes."""

    def __init__(self) -> None:
        self.data = made_up_report(tasks=1, runs=1, attempts=3, agents=1)
        self.error: Exception | None = None

    def __call__(self) -> ReportData:
        if self.error:
            raise self.error
        return self.data

    def change(self, state: str, message: str) -> None:
        (run,) = self.data.runs
        attempt = replace(run.attempts[-1], n=len(run.attempts) + 1, message=message)
        run = replace(run, state=state, attempts=(*run.attempts, attempt))  # type: ignore[arg-type]
        self.data = replace(self.data, runs=(run,))


@pytest.fixture
def live() -> Iterator[tuple[Changing, http.client.HTTPConnection]]:
    changing = Changing()
    page = LivePage(changing, keep=0.0)
    with serving(page, 0) as address:
        connection = http.client.HTTPConnection(address.removeprefix("http://").strip("/"), timeout=20)
        yield changing, connection
        connection.close()


def get(connection: http.client.HTTPConnection, path: str = "/", **headers: str) -> tuple[int, str]:
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    return response.status, response.read().decode()


def test_page_refreshes_while_runs_are_active(
    live: tuple[Changing, http.client.HTTPConnection], capsys: pytest.CaptureFixture[str]
) -> None:
    changing, connection = live
    assert 'http-equiv="refresh"' not in get(connection)[1]
    changing.change("running", "fresh <b>one</b>")
    page = get(connection)[1]
    assert "fresh &lt;b&gt;one&lt;/b&gt;" in page
    assert '<meta http-equiv="refresh" content="15">' in page
    changing.error = UsageError("the directory is gone")
    assert [get(connection)[1] for _time in range(2)] == [page] * 2
    assert capsys.readouterr().err.count("the directory is gone") == 1
    changing.error = None
    changing.change("ended", "the last one")
    assert 'http-equiv="refresh"' not in get(connection)[1]


def test_server_checks_the_host_header(live: tuple[Changing, http.client.HTTPConnection]) -> None:
    for host, path, status in (("attacker.example", "/", 403), ("localhost:9", "/", 200), ("127.0.0.1", "/x", 404)):
        assert (host, get(live[1], path, Host=host)[0]) == (host, status)


def test_port_in_use() -> None:
    page = LivePage(Changing())
    with serving(page, 0) as address, pytest.raises(UsageError, match="--port 0"):
        serving(page, int(address.strip("/").rpartition(":")[2])).__enter__()
