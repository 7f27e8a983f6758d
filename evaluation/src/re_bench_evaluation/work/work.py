"""Work of a person at a task: begun, paused, scored and finished by commands, with all state in files.

The directory is that of an evaluation with one run, which reports read as any other; the person works in ``workspace``.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import secrets
import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from re_bench.data.files import replace_file
from re_bench.data.provenance import hardware, versions
from re_bench.errors import UsageError
from re_bench.records import (
    ATTEMPTS,
    RUNS,
    SERVER,
    SESSIONS,
    EvaluationRecord,
    RunRecord,
    TaskRecord,
    run_directories,
)
from re_bench.runs.attempts import AttemptLog, FinalScore
from re_bench.runs.score_process import score_and_record
from re_bench.scoring.score import GPU_WAIT
from re_bench.task.chat_model import ChatModel
from re_bench.task.choices import choose_model, instance_of
from re_bench.task.discovery import find_task, open_task
from re_bench.task.workspace import lay_out
from re_bench_evaluation.directory import gpu_names, run_name, utc
from re_bench_evaluation.work.clock import Moment, last_change_in, off_between, worked_s
from re_bench_evaluation.work.instructions import FILE, instructions
from re_bench_evaluation.work.record import WORKSPACE, WorkRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from re_bench.runs.attempts import Attempt
    from re_bench.scoring.score import Score
    from re_bench.task.discovery import Task

AGENT = "human"
"""The name of the agent in records."""
_LOCK = "lock"


@dataclass(frozen=True)
class WorkSettings:
    """Under which limits a person works; by default those of a server's sessions."""

    hours: float = 8.0
    max_attempts: int = 100
    sandbox: str | None = None
    """Of scorings, if not the default."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Told by reports, such as who it was and what they know."""


def begin(task: Task, directory: Path, profile: str, settings: WorkSettings) -> None:
    """Lay out a directory for a person, and start the clock.

    Raises:
        UsageError: if the directory exists already, or the profile cannot be prepared here.
        ReBenchError: if preparing or copying fails.
    """
    seed = 0
    try:
        directory.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"{directory}: {error.strerror}; give a directory that does not exist yet") from None
    try:
        lay_out(task, directory / WORKSPACE, profile=profile)
        run = directory / RUNS / run_name(AGENT, None, task.name, seed)
        name = f"{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
        session = run / SERVER / SESSIONS / name
        session.mkdir(parents=True)
        opened, moment = utc(), Moment.now()
        EvaluationRecord(
            name=directory.resolve().name,
            created=opened,
            plan={"budget": {"hours": settings.hours}, "server": {"max_attempts": settings.max_attempts}},
            tasks=(TaskRecord.of(task, profile),),
            versions=versions(),
            hardware=hardware(),
            gpus=gpu_names(),
        ).save(directory)
        RunRecord(
            run=run.name, agent=AGENT, task=task.name, task_id=task.manifest.id, profile=profile, seed=seed,
            state="running", tries=1, hardware=hardware(), began=opened, session=name, tags=dict(settings.tags),
        ).save(run)  # fmt: skip
        record = WorkRecord(
            name=name,
            task=task.manifest.id,
            task_directory=str(task.directory),
            profile=profile,
            opened=opened,
            instance=instance_of(task, profile),
            sandbox=settings.sandbox,
            chat_model=asdict(task.chat_model) if task.chat_model else None,
            hours=settings.hours,
            moment=moment,
            periods=[[moment.unix_s, moment.unix_s]],
            max_attempts=settings.max_attempts,
        )
        replace_file(directory / FILE, instructions(task, record, directory).encode())
        record.save(session)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise


class Work:
    """A person's work in a directory. What changes it needs :meth:`locked`."""

    def __init__(self, directory: Path) -> None:
        """Read the state, with the clock as it is now.

        Raises:
            UsageError: if nothing was begun there.
            ReBenchError: if its files are damaged, or the task is not here any more.
        """
        self.directory = directory
        runs = list(run_directories(directory)) if directory.is_dir() else []
        if len(runs) != 1 or not (directory / WORKSPACE).is_dir():
            raise UsageError(f"{directory}: no work was begun there; begin with: re-bench work begin TASK {directory}")
        self.run = runs[0]
        self.run_record = RunRecord.load(self.run)
        self.session = self.run / SERVER / SESSIONS / (self.run_record.session or "")
        self.record = WorkRecord.load(self.session)
        record = self.record
        here = (Path(record.task_directory) / "task.toml").is_file()
        task = open_task(Path(record.task_directory)) if here else find_task(record.task)
        self.task = choose_model(task, record.profile, ChatModel(**record.chat_model) if record.chat_model else None)
        if record.state == "open":
            self._bring_up_to_date()

    @classmethod
    @contextmanager
    def locked(cls, directory: Path) -> Iterator[Self]:
        """Open the work for the block, in which no other command changes it; what has changed is saved at the end.

        Raises:
            UsageError: as the class, or if another command is at it.
        """
        cls(directory)  # before a file is made in any other directory
        with (directory / _LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"{directory}: another command is at it; wait for it") from None
            work = cls(directory)
            try:
                yield work
            finally:
                work._save()

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The attempts in the log."""
        return AttemptLog(self.session / ATTEMPTS).read().attempts

    @property
    def final(self) -> FinalScore:
        """The final score, were there no more attempts."""
        anchors = self.task.manifest.anchors(self.record.profile)
        scale = (anchors.starting, anchors.reference) if anchors else None
        return AttemptLog(self.session / ATTEMPTS).final(self.task.manifest.aggregation, scale)

    def pause(self) -> None:
        """Stop the clock.

        Raises:
            UsageError: if it stands still.
        """
        self._check_goes()
        self._change(state="paused")

    def resume(self) -> None:
        """Have the clock go on.

        Raises:
            UsageError: if it goes, or the work has ended.
        """
        if self.record.state != "paused":
            raise UsageError(f"{self.directory}: it is not paused, but {self.record.state}")
        moment = Moment.now()
        periods = [*self.record.periods, [moment.unix_s, moment.unix_s]]
        self._change(state="open", moment=moment, periods=periods)

    def score(self) -> tuple[Score, FinalScore]:
        """Score the workspace as it is; the clock goes on meanwhile, but for waiting for the GPU.

        Raises:
            UsageError: if the clock stands still, the hours are over, the attempts are used up, or another instance of
                the task was chosen since.
        """
        self._check_goes()
        if not self.may_score:
            reason = "the hours are over" if not self.record.remaining_s else "all attempts are used up"
            raise UsageError(f"{self.directory}: nothing was scored: {reason}; `re-bench work finish` ends the work")
        return self._score()

    def finish(self, *, scored: bool = True) -> tuple[Score | None, FinalScore]:
        """Score the workspace once more, if hours and attempts allow it, and end the work.

        An attempt that fails for a reason of ours does not end it; ``scored=False`` makes none.

        Raises:
            UsageError: if the work has ended, or another instance of the task was chosen since.
        """
        if self.record.state == "ended":
            raise UsageError(f"{self.directory}: the work has ended")
        score = self._score()[0] if scored and self.may_score else None
        if score is None or score.status != "error":
            self._change(state="ended", ended=utc(), reason="finished", final=asdict(self.final))
        return score, self.final

    @property
    def may_score(self) -> bool:
        """Whether hours and attempts are left."""
        return self.record.remaining_s > 0 and self.record.scored < self.record.max_attempts

    def _score(self) -> tuple[Score, FinalScore]:
        record = self.record
        if instance_of(self.task, record.profile) != record.instance:
            raise UsageError(
                f"{self.task.name}: the work began with instance {record.instance}, and another one was chosen since; "
                "choose it again with re-bench prepare --instance"
            )
        self._save()  # a kill while it is scored loses no time
        workspace, log = self.directory / WORKSPACE, self.session / ATTEMPTS
        score, final = score_and_record(
            self.task, workspace, record.profile, record.sandbox, log, handed_in=record.elapsed
        )
        waited_s = float(score.details.get(GPU_WAIT, 0.0))
        if record.state == "open":
            self._bring_up_to_date()
            used_s = max(record.used_s, self.record.used_s - waited_s)
            self._change(waited_s=record.waited_s + self.record.used_s - used_s, used_s=used_s)
        scored = sum(attempt.status != "error" for attempt in self.attempts)
        self._change(attempts=len(self.attempts), scored=scored)
        return score, final

    def _check_goes(self) -> None:
        if self.record.state == "paused":
            raise UsageError(f"{self.directory}: it is paused; go on with: re-bench work resume {self.directory}")
        if self.record.state == "ended":
            raise UsageError(f"{self.directory}: the work has ended")

    def _bring_up_to_date(self) -> None:
        """Count what has passed since the record was written."""
        record, now = self.record, Moment.now()
        off = off_between(record.moment, now, lambda: last_change_in(self.directory / WORKSPACE))
        *periods, (began, _ended) = record.periods
        if off is not None:
            periods, began = [*periods, [began, max(began, off.began)]], off.ended
        used_s = record.used_s + worked_s(record.moment, now, off)
        self._change(moment=now, used_s=used_s, periods=[*periods, [began, max(began, now.unix_s)]])

    def _change(self, **fields: object) -> None:
        self.record = self.record.model_copy(update=fields)

    def _save(self) -> None:
        record, final = self.record, self.final
        record.save(self.session)
        ended = {"state": "ended", "ended": record.ended, "reason": record.reason} if record.ended else {}
        times = {"wall_s": record.elapsed.wall_s, "working_s": record.elapsed.working_s}
        scores = {"attempts": final.attempts, "valid": final.valid, "raw": final.raw, "reward": final.reward}
        self.run_record = self.run_record.model_copy(update={**ended, **times, **scores})
        self.run_record.save(self.run)
