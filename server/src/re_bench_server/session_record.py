"""The record of a session, ``session.json``, by which a later server offers it again; and the session's clock."""

from __future__ import annotations

import datetime as dt
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, PrivateAttr

from re_bench.attempts.elapsed import Elapsed
from re_bench.errors import ReBenchError
from re_bench.records import SESSION, Record
from re_bench.task.choices import Instance  # noqa: TC001 - pydantic reads it

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class AnswerCall(BaseModel):
    """The last call of ``answer``, by which a later server decides how it ended."""

    since: str
    final: bool
    task_id: str | None
    """The SDK's id, with which a client asks for the result again."""
    attempts_before: int
    wall_s: float | None = None
    """When it was made, as in the attempt's line; None in a record of an early version."""
    working_s: float | None = None
    state: Literal["running", "done", "interrupted"] = "running"


class SessionRecord(Record):
    """What is known of a session, kept in its directory."""

    model_config = ConfigDict(frozen=False)

    name: str
    task: str
    """The task's id."""
    profile: str
    client: str
    """SHA-256 of the client's session id; the id itself gives access and is on no disk."""
    opened: str
    instance: Instance | None = None
    """The instance of the task that its workspace was created with, by which its experiments and attempts are made and
    scored; None before, and where the task has none."""
    state: Literal["opening", "open", "finished", "ended"] = "opening"
    """``opening`` until there is a workspace, ``finished`` after the final answer, ``ended`` when all is over."""
    used_s: float = 0.0
    """Seconds of the session's hours that are over: of working time, and only those in which a server ran."""
    waited_s: float = 0.0
    """Seconds that the server made it wait for a place in the scoring queue and for a GPU's turn; not in ``used_s``."""
    periods: tuple[tuple[float, float], ...] = ()
    """When a server ran: pairs of beginning and end in seconds since 1970, the last as of the last checkpoint."""
    key: bool = False
    """Whether it came with a key for the real model, which is on no disk."""
    attempts: int = 0
    scored: int = 0
    """How many of the attempts are used up: all but those that failed by an internal error."""
    max_attempts: int | None = None
    """How many there may be, as the last server that opened it had it."""
    disk_before: int | None = None
    """Bytes of the workspace at the beginning, from which its growth counts."""
    answer: AnswerCall | None = None
    final: dict[str, Any] | None = None
    """The final score, of a session that has finished, or has ended with attempts."""
    ended: str | None = None
    reason: str | None = None
    """Why it ended."""
    network: dict[str, Any] | None = None
    """Which network its sandbox has, as the last server that opened it had it."""
    gpu: str | None = None
    """UUID of the GPU of its commands, as the last server that gave it one had it."""
    model_dollars: float | None = None
    """What its own calls to the task's model have cost, as far as known; None without a model or a price."""
    scoring_model_dollars: float | None = None
    """What the calls of its scorings have cost; None while there are none."""
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    @classmethod
    def file_name(cls) -> str:
        """Return ``session.json``."""
        return SESSION

    def save(self, directory: Path) -> None:
        """Write the record; it is on the disk when this returns.

        Raises:
            ReBenchError: if it cannot be written.
        """
        with self._lock:
            try:
                super().save(directory)
            except OSError as error:
                raise ReBenchError(f"the session's record cannot be written: {error.strerror}") from None

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read the record of the session in ``directory``.

        Raises:
            ReBenchError: if there is none, it is damaged, or it is of another session.
        """
        record = super().load(directory)
        if record.name != directory.name:
            raise ReBenchError(f"{directory / SESSION}: it cannot be used: it is of the session {record.name!r}")
        return record


class SessionClock:
    """The clock of one session, which continues from its record. It is used by one event loop.

    Time in which no server ran does not count. Working time leaves out what the server made the session wait for: a
    place in the scoring queue, and the GPU. The session's hours are hours of working time.
    """

    def __init__(self, record: SessionRecord) -> None:
        """Begin to count; ``record`` gets the times by :meth:`checkpoint`."""
        self._record = record
        self._waited_s = record.waited_s
        self._waiting_since: float | None = None
        self._waiting_calls = 0
        self._begin()

    def _begin(self) -> None:
        self.started = time.monotonic() - self._record.used_s - self._waited_s
        """When the session would have begun by the monotonic clock, had its server never been down."""
        self._period = (time.time(), time.monotonic())

    def restart(self) -> None:
        """Start again at zero: creating the workspace took none of the session's time."""
        self._record.periods = ()
        self._begin()

    def elapsed(self) -> Elapsed:
        """Return how long the session has run."""
        now = time.monotonic()
        waited_s = self._waited_s + (now - self._waiting_since if self._waiting_since is not None else 0.0)
        wall_s = now - self.started
        return Elapsed(wall_s, max(0.0, wall_s - waited_s))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Leave the block's time out of the working time; what several calls wait at once counts once."""
        self._waiting_calls += 1
        if self._waiting_since is None:
            self._waiting_since = time.monotonic()
        try:
            yield
        finally:
            self._waiting_calls -= 1
            if self._waiting_calls == 0:
                self._waited_s += time.monotonic() - self._waiting_since
                self._waiting_since = None

    def add_wait(self, seconds: float) -> None:
        """Leave seconds out that were waited somewhere else, such as in a scorer's process."""
        self._waited_s += seconds

    def checkpoint(self) -> None:
        """Write the times into the record, to be saved."""
        elapsed = self.elapsed()
        self._record.used_s, self._record.waited_s = elapsed.working_s, elapsed.waited_s
        began, since = self._period
        period = round(began, 3), round(began + time.monotonic() - since, 3)
        earlier = (other for other in self._record.periods if other[0] != period[0])
        self._record.periods = (*earlier, period)


def utc(timespec: Literal["seconds", "milliseconds"] = "seconds") -> str:
    """Return the time now, as records and transcripts have it."""
    return dt.datetime.now(dt.UTC).isoformat(timespec=timespec)
