"""Prometheus metrics of a server."""

from __future__ import annotations

import platform
from collections import Counter as Tally
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    Info,
    ProcessCollector,
    make_asgi_app,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client.metrics_core import Metric

    from re_bench_server.app import AppState
    from re_bench_server.session import Session

_COMMAND_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600, 1800, 3600)
_SCORING_S = (0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200)
_WAIT_S = (0.01, 0.1, 1, 5, 10, 30, 60, 300, 900, 3600)
_SETUP_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """Counters and durations since the server's start; docs/environment.md lists them."""

    def __init__(self, sandbox: str) -> None:
        self.registry = CollectorRegistry()
        self.application: Any = make_asgi_app(self.registry)
        """The ASGI application for ``/metrics``."""
        for collector in (ProcessCollector, GCCollector):
            collector(registry=self.registry)
        build = {"version": version("re-bench-server"), "openreward": version("openreward")}
        Info("re_bench_build", "Versions of the server.", registry=self.registry).info(
            build | {"python": platform.python_version(), "sandbox": sandbox}
        )
        self._setup = self._histogram("session_setup", "From a session's creation to its prompt.", ["task"], _SETUP_S)
        self._setup_failures = self._counter("session_setup_failures", "Sessions that could not be opened.", ["task"])
        self._commands = self._counter("commands", "Commands by outcome.", ["task", "status"])
        self._command = self._histogram("command_duration", "Command time, without waiting.", ["task"], _COMMAND_S)
        self._answers = self._counter("answers", "Answers by status of the attempt.", ["task", "status"])
        self._scoring = self._histogram("scoring_duration", "Scoring time, without waiting.", ["task"], _SCORING_S)
        self._wait = self._histogram("queue_wait", "Time that calls waited in a queue.", ["queue"], _WAIT_S)
        self._dollars = self._counter("model_dollars", "Cost of the tasks' models.", ["task", "caller"])

    def serve_state(self, sessions: Mapping[str, Session], app: AppState) -> None:
        """Add the gauges of sessions and queues, whose values are read at each request to ``/metrics``."""
        self.registry.register(_State(sessions, app))

    def opened(self, task: str, seconds: float) -> None:
        """Count a session that was opened within ``seconds``."""
        self._setup.labels(task).observe(seconds)

    def not_opened(self, task: str) -> None:
        """Count a session that could not be opened."""
        self._setup_failures.labels(task).inc()

    def called(self, task: str, tool: str, metadata: Mapping[str, Any]) -> None:
        """Count a tool call, using the metadata of its response."""
        total, duration = (self._commands, self._command) if tool == "bash" else (self._answers, self._scoring)
        total.labels(task, _command_status(metadata) if tool == "bash" else metadata.get("status", "error")).inc()
        if "seconds" in metadata:
            duration.labels(task).observe(metadata["seconds"] or 0.0)
            self._wait.labels("gpu" if tool == "bash" else "scoring").observe(metadata.get("waited_s") or 0.0)
        self._wait.labels("session").observe(metadata.get("queued_s", 0.0))

    def spent(self, task: str, caller: str, dollars: float) -> None:
        """Add to the cost of a task's model; ``caller`` is ``session`` or ``scoring``."""
        self._dollars.labels(task, caller).inc(dollars)

    def _counter(self, name: str, text: str, labels: list[str]) -> Counter:
        return Counter(f"re_bench_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, labels: list[str], buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"re_bench_{name}_seconds", text, labels, buckets=buckets, registry=self.registry)


class _State(Collector):
    """Gauges of sessions and queues."""

    def __init__(self, sessions: Mapping[str, Session], app: AppState) -> None:
        self._sessions, self._app = sessions, app

    def collect(self) -> Iterator[Metric]:
        open_sessions = GaugeMetricFamily("re_bench_sessions", "Sessions by activity.", labels=["task", "state"])
        sessions = list(self._sessions.values())
        tally = Tally((session.served.id, session.activity.replace(" ", "_")) for session in sessions)
        for labels, count in tally.items():
            open_sessions.add_metric(labels, count)
        yield open_sessions
        most = self._app.settings.max_sessions
        yield GaugeMetricFamily("re_bench_sessions_max", "Maximum number of concurrent sessions.", value=most)
        scorings = GaugeMetricFamily("re_bench_scorings", "Scoring jobs by queue and state.", labels=["queue", "state"])
        for name, queue in (("all", self._app.scoring_queue), ("gpu", self._app.gpu_gate.scorings)):
            scorings.add_metric((name, "running"), queue.running)
            scorings.add_metric((name, "waiting"), queue.waiting)
        yield scorings


def _command_status(metadata: Mapping[str, Any]) -> str:
    if "exit_status" not in metadata:
        return "error"
    if metadata["timed_out"]:
        return "timed_out"
    if metadata["exit_status"] is None:
        return "shell_ended"
    return "ok" if metadata["exit_status"] == 0 else "failed"
