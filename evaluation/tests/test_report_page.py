"""Test the output of reports: the HTML page, its server, and text for terminals."""

from __future__ import annotations

import base64
import hashlib
import http.client
import re
import signal
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from evaluation_factory import TASKS, Shape, make_evaluation, make_validation
from hostile import HOSTILE, poison
from made_up_report import made_up_report

from re_bench.cli.main import main
from re_bench.errors import UsageError
from re_bench_evaluation.report.page import render, visible
from re_bench_evaluation.report.read import read_report
from re_bench_evaluation.report.terminal import as_text
from re_bench_evaluation.report.view import LivePage, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from re_bench_evaluation.report.data import ReportData

pytestmark = pytest.mark.integration
ESCAPES = "\x1b]0;title\x07\x1b[31m[bold red]x[/]\r\n\u202eabc"


@pytest.fixture(scope="module")
def page() -> str:
    """Return the page of the report that is made up."""
    return render(made_up_report())


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
    for text in ("Leaderboard", "no run.json", "Execute Script", "solution.py", "<ins>", "0.1 -&gt; 1.0"):
        assert text in page
    assert page.count("raw scores are modelled, not measured") >= 4
    assert page.count("a stand-in replaces the model") >= 3


def test_figures_contain_no_untrusted_text() -> None:
    page = render(poison(made_up_report(), HOSTILE["script"]))
    figures = [base64.b64decode(image).decode() for image in re.findall(r'<img src="[^"]*;base64,([^"]*)"', page)]
    assert len(figures) == 2 + 2 * 2 + 1
    assert not any("window.ran" in figure for figure in figures)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b\u202ec", "a\\x00b\\u202ec"),
        ("\ud800", "\\ud800"),
        ("e\u0301" + "\u0301" * 50, "e\u0301\u0301\u0301"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_misleading_characters_are_escaped(text: object, shown: object) -> None:
    assert visible(text) == shown


def test_command_writes_page(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    shape = Shape(tasks=TASKS[:1], runs=1, attempts=4, messages=(hostile,), sources=(f"a = '{hostile}'\n", "b = 2\n"))
    evaluation = make_evaluation(tmp_path / "evaluation", hostile, shape)
    assert main(["report", str(evaluation), "--out", str(tmp_path / "report.html")]) == 0
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
    for host, path, status in (("attacker.example", "/", 403), ("localhost:9", "/x", 404)):
        assert (host, get(live[1], path, Host=host)[0]) == (host, status)


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    shape = Shape((("mlab", "model-a"),), TASKS[3:], runs=2, messages=(ESCAPES,), traces=False, submissions=False)
    return make_evaluation(tmp_path / "first", shape=shape)


def test_tables_and_problems(evaluation: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = str(tmp_path / "gone")
    assert main(["report", str(evaluation), str(make_validation(tmp_path / "v.json")), gone]) == 1
    text = capsys.readouterr().out
    for part in (
        "leaderboard, profile cpu", "* raw scores are modelled, not measured", "a stand-in replaces the model",
        "first mlab model-a: only 2 runs", "passed, 3 of 3", "problems: 1", gone,
    ):  # fmt: skip
        assert part in text


def test_untrusted_text_is_escaped(evaluation: Path) -> None:
    data = read_report([evaluation])
    assert any(ESCAPES in refusal.message for cell in data.cells for refusal in cell.refusals)
    for width in (40, 200, None):
        text = as_text(data, width)
        assert not {"\x07", "\r", "\u202e", "\x1b"} & set(text)
    assert "[bold red]x[/]" in as_text(data)


def test_view_serves_the_page_until_it_is_interrupted(evaluation: Path) -> None:
    command = [sys.executable, "-m", "re_bench.cli", "view", str(evaluation)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = next(word for word in process.stdout.readline().split() if word.startswith("http://"))
        connection = http.client.HTTPConnection(address.removeprefix("http://").strip("/"), timeout=20)
        assert "The task delta" in get(connection)[1]
        connection.close()
        process.send_signal(signal.SIGINT)
        _output, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (130, "")
