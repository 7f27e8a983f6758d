"""Serve the page of a report on the loopback address; browsers reload the page while runs are active.

To prevent DNS rebinding, requests whose ``Host`` is neither the loopback address nor ``localhost`` are rejected.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import print_progress
from re_bench_evaluation.report.page import render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from re_bench_evaluation.report.data import ReportData

LOOPBACK = "127.0.0.1"
_REFRESH_S = 15
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


class LivePage:
    """The page of a report; a request renders the page again if it is stale."""

    def __init__(self, read: Callable[[], ReportData], keep: float = 10.0) -> None:
        """Render the page once.

        Args:
            read: reads the report; an error in the first call is raised.
            keep: how long to cache the page, as a multiple of the time needed to read and render the report.
        """
        self._read, self._keep = read, keep
        self._lock = threading.Lock()  # matplotlib's settings are global
        self._trouble = ""
        self._make()

    def get(self) -> str:
        """Return the current page, or the previous page if the report cannot be read now."""
        with self._lock:
            if time.monotonic() >= self._old_at:
                try:
                    self._make()
                except (ReBenchError, OSError) as error:  # a directory may disappear while it is read
                    if str(error) != self._trouble:
                        print_progress(f"page not updated: {error}")
                    self._trouble = str(error)
            return self._page

    def _make(self) -> None:
        began = time.monotonic()
        data = self._read()
        active = any(run.state in {"waiting", "running"} for run in data.runs)
        refresh_s = max(_REFRESH_S, round(2 * self._keep * (time.monotonic() - began)))
        self._page = render(data, refresh_s=refresh_s if active else None)
        now = time.monotonic()
        self._old_at = now + self._keep * (now - began)


@contextmanager
def serving(page: LivePage, port: int) -> Iterator[str]:
    """Serve a page during the ``with`` block, and yield its address.

    Raises:
        UsageError: if the port is not free.
    """

    class Handler(BaseHTTPRequestHandler):
        """Serve the page at ``/``."""

        def do_GET(self) -> None:
            """Send the page, or an error."""
            if _host_name(self.headers.get("Host", "")) not in {LOOPBACK, "localhost"}:
                self.send_error(HTTPStatus.FORBIDDEN, "Use the address 127.0.0.1 or localhost.")
            elif self.path != "/":
                self.send_error(HTTPStatus.NOT_FOUND)
            else:
                body = page.get().encode()
                self.send_response(HTTPStatus.OK)
                for name, value in _HEADERS.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    try:
        server = ThreadingHTTPServer((LOOPBACK, port), Handler)
    except (OSError, OverflowError) as error:
        raise UsageError(f"{LOOPBACK}:{port}: cannot listen: {error}; --port 0 picks a free port") from None
    server.daemon_threads = True
    with server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        try:
            yield f"http://{LOOPBACK}:{server.server_address[1]}/"
        finally:
            server.shutdown()


def view(read: Callable[[], ReportData], port: int) -> None:
    """Print the address of a report, and serve the report until the process is stopped.

    Raises:
        UsageError: if the port is not free.
        ReBenchError: if the first read fails.
    """
    with serving(LivePage(read), port) as address:
        print(f"Report at {address} (reloads while runs are active; stop with Ctrl-C)", flush=True)
        threading.Event().wait()


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
