"""Serves the page of a report to browsers on this machine, and reads the report again while runs are active.

Only this machine can ask: the socket is bound to the loopback address, and a request must name it, so that no foreign
page can have a name of its own lead here.
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
    """The page of a report, which is made again when it is asked for and old."""

    def __init__(self, read: Callable[[], ReportData], keep: float = 10.0) -> None:
        """Make the page once; errors are those of ``read``.

        Args:
            read: reads the report.
            keep: how long a page is kept, as a multiple of the time that making it takes.
        """
        self._read, self._keep = read, keep
        self._lock = threading.Lock()  # matplotlib's settings are those of the process
        self._trouble = ""
        self._make()

    def get(self) -> str:
        """Return the page; an old one if the report cannot be read at the moment."""
        with self._lock:
            if time.monotonic() >= self._old_at:
                try:
                    self._make()
                except (ReBenchError, OSError) as error:  # a directory may be gone in the middle of reading it
                    if str(error) != self._trouble:
                        print_progress(f"the page stays as it is: {error}")
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
    """Serve a page while the block runs, and yield its address.

    Raises:
        UsageError: if the port is not free.
    """

    class Handler(BaseHTTPRequestHandler):
        """Answers a browser with the page at ``/``."""

        def do_GET(self) -> None:
            """Answer a request."""
            if urlsplit(f"//{self.headers.get('Host', '')}").hostname not in {LOOPBACK, "localhost"}:
                self.send_error(HTTPStatus.FORBIDDEN, "This server answers to its address on this machine only.")
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
            """Log no requests."""

    try:
        server = ThreadingHTTPServer((LOOPBACK, port), Handler)
    except (OSError, OverflowError) as error:
        raise UsageError(f"port {port} of {LOOPBACK}: cannot listen: {error}; --port 0 takes a free one") from None
    server.daemon_threads = True
    with server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        try:
            yield f"http://{LOOPBACK}:{server.server_address[1]}/"
        finally:
            server.shutdown()


def view(read: Callable[[], ReportData], port: int) -> None:
    """Serve a report until the process is asked to end, and print the address of its page.

    Raises:
        UsageError: if the port is not free.
        ReBenchError: as reading raises it the first time.
    """
    with serving(LivePage(read), port) as address:
        print(f"{address} shows the report, and reads it again while runs are active; Ctrl-C ends it", flush=True)
        threading.Event().wait()
