"""Serve a report to browsers on this machine, and tell them of attempts as they arrive.

The page is that of ``--out``; runs that have changed come as server-sent events, rendered by the same template. Only
this machine can ask: the socket is bound to the loopback address, and a request must name it, so that no foreign page
can have a name of its own lead here.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, urlsplit

from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import print_progress
from re_bench_evaluation.report.html.fragments import run_id
from re_bench_evaluation.report.html.page import render, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from re_bench_evaluation.report.data import ReportData

LOOPBACK = "127.0.0.1"
_OUR_NAMES = {LOOPBACK, "localhost"}
_HEARTBEAT_S = 10.0
"""After so long without an event, a comment finds out whether the browser is still there."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


class Event(NamedTuple):
    """A run that has changed."""

    number: int
    data: str
    """A JSON object: the name of the run's element, how many attempts are new, and the element."""


class LiveReport:
    """A report that is read again and again, and what has changed in it since."""

    def __init__(self, look: Callable[[], ReportData], read: Callable[[], ReportData]) -> None:
        """Read it once; errors are those of the arguments.

        Args:
            look: reads the report without diffs and steps, which is quick and shows whether anything has changed.
            read: reads all of it.
        """
        self._look, self._read = look, read
        self._known = {run.key: run for run in look().runs}
        self._data = read()
        self._number = int(time.time())  # so that a browser that has seen an earlier server hears of what is new
        self._events: dict[str, Event] = {}
        self._page: tuple[int, str] | None = None
        self._rendering = threading.Lock()  # matplotlib's settings are those of the process
        self._changed = threading.Condition()
        self.closed = False

    def refresh(self) -> None:
        """Read the report again and tell of every run that has changed."""
        known, before = {run.key: run for run in self._look().runs}, self._known
        changed_keys = {key for key, run in known.items() if before.get(key) != run}
        if not changed_keys:
            return
        data, self._known = self._read(), known
        changed = [run for run in data.runs if run.key in changed_keys]
        rows = rows_of(data)
        contents = {}
        for run in changed:
            old = before.get(run.key)
            added = len(known[run.key].attempts) - (len(old.attempts) if old else 0)
            contents[run.key] = {"run": run_id(run), "attempts": max(0, added), "html": rows.compressed(run)}
        with self._changed:  # all at once, so that a page has exactly what the events up to its number say
            for key, content in contents.items():
                self._number += 1
                self._events[key] = Event(self._number, json.dumps(content))
            self._data = data
            self._changed.notify_all()

    def page(self) -> str:
        """Return the page as of the last reading."""
        with self._rendering:
            with self._changed:
                number, data = self._number, self._data
            if self._page is None or self._page[0] != number:
                self._page = number, render(data, live=number)
            return self._page[1]

    def wait(self, after: int, timeout_s: float) -> list[Event]:
        """Return the events after one, waiting for the next if there is none."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed or any(self._after(after)), timeout_s)
            return sorted(self._after(after))

    def close(self) -> None:
        """Have everything that waits return."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def _after(self, number: int) -> Iterator[Event]:
        return (event for event in self._events.values() if event.number > number)


class _Handler(BaseHTTPRequestHandler):
    """Answers a browser: ``/`` is the page, ``/events`` the stream of what changes."""

    server: _Server

    def do_GET(self) -> None:
        """Answer a request."""
        path = urlsplit(self.path)
        if urlsplit(f"//{self.headers.get('Host', '')}").hostname not in _OUR_NAMES:
            self.send_error(HTTPStatus.FORBIDDEN, "This server answers to its address on this machine only.")
        elif path.path == "/":
            self._send("text/html; charset=utf-8", self.server.report.page().encode())
        elif path.path == "/events":
            self._stream(self.headers.get("Last-Event-ID") or parse_qs(path.query).get("after", ["0"])[0])
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def end_headers(self) -> None:
        """Add what every answer has."""
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Say nothing of each request."""

    def _send(self, kind: str, body: bytes) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, after: str) -> None:
        last, report = int(after) if after.isascii() and after.isdecimal() else 0, self.server.report
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        while not report.closed:
            events = report.wait(last, _HEARTBEAT_S)
            text = "".join(f"event: run\nid: {event.number}\ndata: {event.data}\n\n" for event in events) or ":\n\n"
            self.wfile.write(text.encode())
            last = max([last, *(event.number for event in events)])


class _Server(ThreadingHTTPServer):
    """One thread for each connection; they end with the process."""

    daemon_threads = True

    def __init__(self, port: int, report: LiveReport) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.report = report

    def handle_error(self, *_arguments: object) -> None:
        """Say nothing: a browser that goes away in the middle of an answer is no error."""


@contextmanager
def serving(report: LiveReport, port: int) -> Iterator[str]:
    """Serve a report while the block runs, and yield the address of its page.

    Args:
        report: what is served; it is closed at the end.
        port: to listen at; 0 for a free one.

    Raises:
        UsageError: if the port cannot be had.
    """
    try:
        server = _Server(port, report)
    except (OSError, OverflowError) as error:
        raise UsageError(f"port {port} of {LOOPBACK} cannot be had: {error}; --port 0 takes a free one") from None
    with server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        try:
            yield f"http://{LOOPBACK}:{server.server_address[1]}/"
        finally:
            report.close()
            server.shutdown()


def view(look: Callable[[], ReportData], read: Callable[[], ReportData], port: int, every_s: float = 2.0) -> None:
    """Serve a report until the process is asked to end, and print the address of its page.

    Args:
        look: reads the report without diffs and steps, again and again.
        read: reads all of it, when something has changed.
        port: to listen at; 0 for a free one.
        every_s: how long to wait between two readings, at least; never less than ten times what the last one took.

    Raises:
        UsageError: if the port cannot be had.
        ReBenchError: as reading raises it the first time.
    """
    report = LiveReport(look, read)
    with serving(report, port) as address:
        print(f"{address} shows new attempts as they arrive; Ctrl-C ends it", flush=True)
        _refresh_forever(report, every_s)


def _refresh_forever(report: LiveReport, every_s: float) -> None:
    took, trouble = 0.0, ""
    while True:
        time.sleep(max(every_s, 10 * took))
        began = time.monotonic()
        try:
            report.refresh()
        except (ReBenchError, OSError) as error:  # a directory may be gone in the middle of reading it
            if str(error) != trouble:
                print_progress(f"the page stays as it is: {error}")
            trouble = str(error)
        took = time.monotonic() - began
