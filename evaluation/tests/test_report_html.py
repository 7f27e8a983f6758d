from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from evaluation_factory import TASKS, Shape, make_evaluation
from made_up_report import made_up_report

from re_bench.errors import UsageError
from re_bench_evaluation.report.html import render
from re_bench_evaluation.report.html.figures import progress_plot
from re_bench_evaluation.report.html.series import Series
from re_bench_evaluation.report.html.site import only_evaluation, only_task, write_page, write_site
from re_bench_evaluation.report.html.text import diff_markup, visible
from re_bench_evaluation.report.html.view import LiveReport, serving

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from re_bench_evaluation.report.data import ReportData


def test_the_policy_allows_our_script_and_style_and_nothing_else() -> None:
    page = render(made_up_report())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for tag in ("style", "script")
        for text in re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    ]
    assert policy[1].replace("&#39;", "'").split("; ") == [
        "default-src 'none'", f"style-src 'sha256-{hashes[0]}'", f"script-src 'sha256-{hashes[1]}'",
        "base-uri 'none'", "form-action 'none'",
    ]  # fmt: skip


def test_a_page_names_no_address() -> None:
    page = render(made_up_report())
    assert set(re.findall(r"[a-z]+://[^\s\"<]*", page)) == {"http://www.w3.org/2000/svg"}


def test_a_page_has_every_section_and_says_what_is_modelled_or_a_stand_in() -> None:
    page = render(made_up_report())
    for text in ("Leaderboard", "Expected best", "Best so far", "Cost", "every run", "Problems", "line 3 is torn"):
        assert text.lower() in page.lower()
    assert page.count("the time is modelled from a replayed trace") >= 4
    assert page.count("a stand-in of ours answers") >= 3


def test_a_report_of_nothing_is_a_page() -> None:
    data = made_up_report(runs=0)
    nothing = replace(data, evaluations=(), tasks=(), leaderboards=(), cells=(), budgets=(), runs=(), problems=())
    assert "There is no run that is over" in render(nothing)
    assert "0 runs" in render(data)


def test_runs_without_times_or_rewards_are_shown() -> None:
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
    assert "Of no run is it known when its attempts were handed in" in page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("a\x00b\u202ec", "a\\u0000b\\u202ec"),
        ("\ud800", "\\ud800"),
        ("e\u0301" + "\u0301" * 50, "e\u0301\u0301\u0301"),
        ("\U000e0041", "\\U000e0041"),
        (3, 3),
    ],
)
def test_characters_that_mislead_are_shown_as_their_code(text: object, shown: object) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("hours", "unit", "last"), [(8.0, "hours", 8.0), (0.5, "minutes", 30.0), (0.01, "seconds", 36.0)]
)
def test_axes_of_time_are_in_the_unit_of_their_length(hours: float, unit: str, last: float) -> None:
    data = made_up_report(tasks=1)
    scale = hours * 3600 / max(run.wall_s or 0.0 for run in data.runs)
    runs = [
        replace(run, wall_s=(run.wall_s or 0.0) * scale, attempts=tuple(
            replace(attempt, wall_s=(attempt.wall_s or 0.0) * scale) for attempt in run.attempts))
        for run in data.runs
    ]  # fmt: skip
    data = replace(data, runs=tuple(runs), cells=tuple(replace(cell, curves=()) for cell in data.cells))
    plot = progress_plot(data, data.tasks[0], "wall", Series.of(data), "progress")
    assert plot is not None
    assert plot.x_label == f"wall-clock time ({unit})"
    assert max(x for step in plot.steps for x in step.x) == pytest.approx(last)


def test_lines_of_a_diff_are_marked() -> None:
    assert diff_markup("@@ -1 +1 @@\n-<a>\n+<b>\n c\n") == (
        "@@ -1 +1 @@\n<del>-&lt;a&gt;\n</del><ins>+&lt;b&gt;\n</ins> c\n"
    )


def test_parts_of_a_report_hold_what_is_theirs() -> None:
    data = made_up_report()
    part = only_task(data, data.tasks[1].key)
    assert {run.task for run in part.runs} == {data.tasks[1].key} == {cell.task for cell in part.cells}
    assert only_evaluation(data, "made-up") == data
    assert not only_evaluation(data, "another").runs


def test_pages_that_cannot_be_written_are_the_users_matter(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made"):
        write_site(made_up_report(runs=0), tmp_path / "file" / "site")
    with pytest.raises(UsageError, match="cannot be written"):
        write_page(made_up_report(runs=0), tmp_path / "none" / "report.html")


def test_the_command_writes_a_page_and_a_site(
    tmp_path: Path, re_bench: Callable[..., subprocess.CompletedProcess[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RE_BENCH_CACHE", str(tmp_path / "cache"))
    hostile = "<script>alert(1)</script>"
    shape = Shape(tasks=TASKS[:1], runs=1, attempts=4, messages=(hostile,), sources=(f"a = '{hostile}'\n", "b = 2\n"))
    evaluation = make_evaluation(tmp_path / "evaluation", hostile, shape)
    done = re_bench("report", evaluation, "--out", tmp_path / "report.html", "--site", tmp_path / "site")
    assert (done.returncode, done.stdout) == (0, "")
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == [
        "evaluation-1.html", "index.html", "task-1.html",
    ]  # fmt: skip
    page = (tmp_path / "report.html").read_text()
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 10
    assert hostile not in page


class Changing:
    """What reads a report that a test changes."""

    def __init__(self) -> None:
        self.data = made_up_report(tasks=1, runs=1, attempts=3, agents=1)

    def __call__(self) -> ReportData:
        return self.data

    def add(self, message: str) -> None:
        run = self.data.runs[0]
        attempt = replace(run.attempts[-1], n=len(run.attempts) + 1, message=message)
        self.data = replace(self.data, runs=(replace(run, attempts=(*run.attempts, attempt)), *self.data.runs[1:]))


@pytest.fixture
def live() -> Iterator[tuple[Changing, LiveReport, http.client.HTTPConnection]]:
    changing = Changing()
    report = LiveReport(changing, changing)
    with serving(report, 0) as address:
        connection = http.client.HTTPConnection(address.removeprefix("http://").strip("/"), timeout=20)
        yield changing, report, connection
        connection.close()


def _event(response: http.client.HTTPResponse) -> tuple[int, dict[str, object]]:
    """Return the next event of a stream, without comments."""
    fields: dict[str, str] = {}
    for line in iter(lambda: response.readline().decode().rstrip("\n"), None):
        if not line and "data" in fields:
            return int(fields["id"]), json.loads(fields["data"])
        name, _, value = line.partition(": ")
        fields[name] = value
    raise AssertionError("unreachable")


def test_a_server_tells_of_new_attempts(live: tuple[Changing, LiveReport, http.client.HTTPConnection]) -> None:
    changing, report, connection = live
    connection.request("GET", "/")
    page = connection.getresponse().read().decode()
    known = re.search(r'data-live="(\d+)"', page)
    assert known
    connection.request("GET", f"/events?after={known[1]}")
    stream = connection.getresponse()
    assert stream.headers["Content-Type"] == "text/event-stream"
    report.refresh()  # nothing has changed, so the first event is of the change
    changing.add("fresh <b>one</b>")
    threading.Timer(0.2, report.refresh).start()
    number, content = _event(stream)
    assert number > int(known[1])
    assert content["attempts"] == 1
    assert f'id="{content["run"]}"' in str(content["html"])
    assert f'id="{content["run"]}"' in page
    changing.add("a second one")
    report.refresh()
    assert _event(stream)[0] > number


def test_a_browser_that_comes_back_hears_what_it_missed(
    live: tuple[Changing, LiveReport, http.client.HTTPConnection],
) -> None:
    changing, report, connection = live
    for message in ("one", "two"):
        changing.add(message)
        report.refresh()
    connection.request("GET", "/events", headers={"Last-Event-ID": "0"})
    number, _content = _event(connection.getresponse())  # the newest state of the run, once
    assert report.wait(number, 0) == []


def test_a_server_answers_to_its_own_name_only(live: tuple[Changing, LiveReport, http.client.HTTPConnection]) -> None:
    connection = live[2]
    for host, path, status in (("attacker.example", "/", 403), ("localhost:9", "/", 200), ("127.0.0.1", "/x", 404)):
        connection.request("GET", path, headers={"Host": host})
        response = connection.getresponse()
        response.read()
        assert (host, response.status) == (host, status)


def test_a_server_ends_while_browsers_listen() -> None:
    report = LiveReport(changing := Changing(), changing)
    with serving(report, 0) as address:
        connection = http.client.HTTPConnection(address.removeprefix("http://").strip("/"), timeout=60)
        connection.request("GET", "/events")
        stream = connection.getresponse()
        began = time.monotonic()
    assert time.monotonic() - began < 50
    assert stream.read() in {b"", b":\n\n"}
    connection.close()


def test_a_port_that_is_taken_is_the_users_matter() -> None:
    report = LiveReport(changing := Changing(), changing)
    with serving(report, 0) as address, pytest.raises(UsageError, match="--port 0"):
        serving(report, int(address.strip("/").rpartition(":")[2])).__enter__()
