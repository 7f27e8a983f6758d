"""The live table of a validation: what runs, the longest first, what has failed, what is done, and what waits."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from re_bench.cli.live import capture_stderr
from re_bench.processes import print_progress
from re_bench.runs.validation import honest_base, judge
from re_bench.tables import clock, number, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future

    from rich.console import Console, ConsoleOptions, RenderResult

    from re_bench.cli.live import CapturedStderr
    from re_bench.runs.validation import Row
    from re_bench.runs.validation_history import ValidationRecord
    from re_bench.runs.validation_view import Scorings
    from re_bench.scoring.score import Score
    from re_bench.task.discovery import Task

_LINES = 3
_FRAME = 6
"""Lines of a display that are neither rows of solutions nor messages."""
_PER_SECOND = 4
_STYLES = {"running": "cyan", "ok": "green", "FAILED": "bold red", "waiting": "dim"}
_ORDER = ("running", "FAILED", "judging", "ok", "waiting")


@dataclass
class _Solution:
    """One solution and how far it is."""

    name: str
    scorings: list[Future[tuple[Score, float]]] = field(default_factory=list)
    began: dict[int, float] = field(default_factory=dict)
    """When a scoring was first seen to run, by its place."""
    elapsed: list[float] = field(default_factory=list)
    """Of those that have ended."""
    ended: float = 0.0
    """When the last one ended."""

    def seconds(self, now: float) -> float:
        """Return what its scorings have taken so far, together."""
        running = [index for index, future in enumerate(self.scorings) if future.running()]
        return sum(self.elapsed) + sum(now - self.began.setdefault(index, now) for index in running)

    @property
    def runs(self) -> bool:
        return any(future.running() for future in self.scorings)

    @property
    def done(self) -> bool:
        return len(self.elapsed) == len(self.scorings)


class LiveView:
    """A table on the terminal that is drawn again several times a second."""

    def __init__(
        self, task: Task, profile: str, last: ValidationRecord | None, place: str, lines: Sequence[str]
    ) -> None:
        """Show nothing yet.

        Args:
            task: the task.
            profile: a profile's own name.
            last: the validation before, for the times that are expected.
            place: of the task among several, such as ``task 2 of 5``; may be empty.
            lines: what programs write to stderr, of which the last are shown.
        """
        self._task, self._profile, self._last, self._place, self._lines = task, profile, last, place, lines
        self._began = time.monotonic()
        self._solutions: dict[str, _Solution] = {}
        self._scores: dict[str, list[Score]] = {}

    def submitted(self, scorings: Scorings) -> None:
        """Show them as waiting."""
        for future, name in scorings.items():
            self._solutions.setdefault(name, _Solution(name)).scorings.append(future)

    def scored(self, name: str, score: Score, elapsed: float) -> None:
        """Show the verdict, as soon as there is one."""
        self._scores.setdefault(name, []).append(score)
        self._solutions[name].elapsed.append(elapsed)
        self._solutions[name].ended = time.monotonic()

    @property
    def has_errors(self) -> bool:
        """Whether something of ours has failed, so that messages are worth reading."""
        return any(score.status == "error" for scores in self._scores.values() for score in scores)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the table in what room there is: rows that do not fit are counted."""
        del options
        now = time.monotonic()
        shown = sorted((self._row(one, now) for one in tuple(self._solutions.values())), key=lambda row: row[0])
        room = max(1, console.height - _FRAME - _LINES)
        table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False, expand=True)
        for name in ("state", "solution", "scored", "elapsed", "expected", "verdict"):
            right, last = name in {"scored", "elapsed", "expected"}, name == "verdict"
            table.add_column(name, justify="right" if right else "left", no_wrap=True, ratio=1 if last else None)
        for _key, cells in shown[:room]:
            table.add_row(*cells)
        more = [f"and {len(shown) - room} more"] if len(shown) > room else []
        lines = [*more, *list(self._lines)[-_LINES:]]
        yield Group(self._title(now), table, *(Text(line, "dim", overflow="ellipsis", no_wrap=True) for line in lines))

    def _title(self, now: float) -> Text:
        done = sum(one.done for one in self._solutions.values())
        expected = f" of about {clock(self._last.seconds)}" if self._last else ""
        name = f"{self._task.name}, profile {self._profile}"
        count = f"{done} of {len(self._solutions)} solutions" if self._solutions else "preparing"
        parts = [name, self._place, count, clock(now - self._began) + expected]
        return Text("  ".join(filter(None, parts)), "bold", overflow="ellipsis", no_wrap=True)

    def _row(self, one: _Solution, now: float) -> tuple[tuple[int, float], list[Text]]:
        """Return a row with what it is sorted by."""
        row = self._judged(one.name) if one.done else None
        seconds, past = one.seconds(now), self._last.solutions.get(one.name) if self._last else None
        state = "running" if one.runs else "waiting"
        if one.done:
            state = "judging" if row is None else "ok" if row.holds else "FAILED"
        by_time = {"running": -seconds, "waiting": 0.0}.get(state, -one.ended)
        text = f"reward {number(row.reward)}: {row.verdict}" if row and row.reward is not None else row and row.verdict
        cells = [
            Text(state, _STYLES.get(state, "")),
            Text(one.name),
            Text(f"{len(one.elapsed)}/{len(one.scorings)}"),
            Text(clock(seconds) if seconds else "-"),
            Text(clock(past.seconds * len(one.scorings)) if past else "-"),
            Text(printable(text or "")),
        ]
        return (_ORDER.index(state), by_time), cells

    def _judged(self, name: str) -> Row | None:
        """Return the row of a solution whose scores are all there; None while what it is compared with has none."""
        if name.startswith("cheats/") and any(score.status == "valid" for score in self._scores[name]):
            base = self._solutions.get(honest_base(self._task, name, self._profile))
            if base is not None and not base.done:
                return None
        return judge(self._task, name, self._scores)


@contextmanager
def live_view(task: Task, profile: str, last: ValidationRecord | None, place: str = "") -> Iterator[LiveView]:
    """Show a validation on the terminal for the block, and nothing of it afterwards but messages about errors of ours.

    It stays as it was where a signal ends the process.

    Args:
        task: the task.
        profile: a profile's own name.
        last: the validation before, if there is one.
        place: of the task among several, such as ``task 2 of 5``.
    """
    captured: CapturedStderr | None = None
    failed = True
    try:
        with capture_stderr() as captured:
            view = LiveView(task, profile, last, place, captured.lines)
            with Live(
                view,
                console=captured.console,
                refresh_per_second=_PER_SECOND,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            ) as live:
                try:
                    yield view
                except SystemExit:
                    live.transient = False  # what was scored by then is told nowhere else
                    raise
        failed = view.has_errors
    except SystemExit:  # by a signal
        failed = False
        raise
    finally:
        for line in captured.lines if captured and failed else ():
            print_progress(line)
