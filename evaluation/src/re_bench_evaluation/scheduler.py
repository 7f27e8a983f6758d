"""All runs of an evaluation: which start when, what is tried again, and what the cap on dollars allows."""

from __future__ import annotations

import datetime as dt
import math
import time
from concurrent.futures import FIRST_COMPLETED, wait
from typing import TYPE_CHECKING, get_args

from re_bench.errors import ReBenchError
from re_bench.processes import print_progress
from re_bench.records import RunRecord, RunState
from re_bench.runs.executor import Resources, open_executor
from re_bench.tables import printable
from re_bench_evaluation.directory import utc
from re_bench_evaluation.run import RunJob, cost_so_far, execute_run, most_dollars
from re_bench_evaluation.session import end_leftovers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future
    from pathlib import Path

    from re_bench.runs.executor import Executor
    from re_bench_evaluation.directory import Evaluation

_TICK_S = 1.0
_FIRST_WAIT_S = 5.0
_LONGEST_WAIT_S = 300.0
OVER_CAP = "the cap on dollars leaves no room for its budget"


class DollarCap:
    """Keeps, for every run, what it has cost or may still cost; all of them together stay within the cap.

    A run starts only if what others have spent, the most that running ones may cost, and the most that it may cost
    itself fit. So as long as runs keep to their own budgets, no order of starts, ends and failures goes over the cap.
    """

    def __init__(self, cap: float | None, spent: Mapping[str, float]) -> None:
        """Begin."""
        self.cap = cap
        self._amounts = dict(spent)

    @property
    def committed(self) -> float:
        """What has been spent, and what running runs may spend at most, in dollars."""
        return math.fsum(self._amounts.values())

    def start(self, run: str, most: float) -> bool:
        """Reserve for a run what it may have cost at its end, tries before included; tell whether the cap allows it."""
        others = [amount for name, amount in self._amounts.items() if name != run]
        if self.cap is not None and math.fsum([*others, most]) > self.cap:
            return False
        self._amounts[run] = most
        return True

    def end(self, run: str, spent: float) -> None:
        """Replace what was reserved for a run by what it has cost, in dollars."""
        self._amounts[run] = spent


def evaluate(
    evaluation: Evaluation,
    plan_directory: Path,
    *,
    jobs: int | None = None,
    ray: str | None = None,
    show: Callable[[Mapping[str, RunRecord]], None] | None = None,
) -> dict[str, RunRecord]:
    """Carry out what is not done yet of an evaluation; return all of its runs by name.

    A line on stderr tells of every run that begins, ends or is tried again. Where the process is stopped by an
    exception, an interrupt or a signal, runs that went on are left for the next time, and the exception goes on.

    Raises:
        UsageError: if there is no machine for a run, or no such cluster.
    """
    leftovers = end_leftovers(evaluation.runs, evaluation.plan.kinds)
    evaluation.note("evaluation begins", leftovers=leftovers)
    runs = _Runs(evaluation, plan_directory, show)
    try:
        with open_executor(ray) as executor:
            runs.carry_out(executor, jobs)
    except BaseException as error:
        runs.note_how_all_stopped()
        evaluation.note("evaluation stopped", because=type(error).__name__)
        raise
    states = [record.state for record in runs.records.values()]
    evaluation.note("evaluation ends", **{state: states.count(state) for state in get_args(RunState)})
    return runs.records


class _Runs:
    def __init__(
        self,
        evaluation: Evaluation,
        plan_directory: Path,
        show: Callable[[Mapping[str, RunRecord]], None] | None,
    ) -> None:
        self._evaluation, self._plan, self._plan_directory = evaluation, evaluation.plan, plan_directory
        self._show = show or len
        self._waiting: dict[str, float] = {}
        """The earliest moment of a run's next try, as ``time.monotonic`` tells it."""
        self._running: dict[str, Future[RunRecord]] = {}
        """The runs that were submitted."""
        self.records: dict[str, RunRecord] = {}
        for record in evaluation.planned_runs():
            self._take_up(record)
        spent = {name: cost_so_far(evaluation.runs / name, one, self._plan) for name, one in self.records.items()}
        self._cap = DollarCap(self._plan.dollars, spent)

    def _take_up(self, record: RunRecord) -> None:
        """Have a run that has not ended wait; one that had failed gets all of its tries again."""
        if record.state != "ended":
            directory = self._evaluation.runs / record.run
            directory.mkdir(exist_ok=True)
            record = record.model_copy(update={"state": "waiting", "failures": 0})
            record.save(directory)
            self._waiting[record.run] = 0.0
        self.records[record.run] = record

    def carry_out(self, executor: Executor, jobs: int | None) -> None:
        while self._waiting or self._running:
            now = time.monotonic()
            self._start(executor, jobs, now)
            if not self._running and all(moment <= now for moment in self._waiting.values()):
                break
            if self._running:
                done, _others = wait(self._running.values(), _TICK_S, FIRST_COMPLETED)
            else:
                time.sleep(_TICK_S)
                done = set()
            for name in [name for name, future in self._running.items() if future in done]:
                self._ended(name, self._running.pop(name))
            self._look()
            self._show(self.records)
        for name in self._waiting:
            self._change(name, reason=OVER_CAP)
            self._tell(name, "not started", OVER_CAP)

    def _start(self, executor: Executor, jobs: int | None, now: float) -> None:
        """Submit what may start now; each starts when there is room."""
        plan, need = self._plan, self._plan.resources
        resources = Resources(need.cores, plan.run_memory_mib, need.gpus, need.gpu_type)
        for name in [name for name, moment in self._waiting.items() if moment <= now]:
            if jobs is not None and len(self._running) >= jobs:
                return
            record, directory = self.records[name], self._evaluation.runs / name
            task = self._evaluation.tasks[record.task]
            if not self._cap.start(name, most_dollars(directory, record, task, plan)):
                continue
            job = RunJob(directory, plan, self._plan_directory, task)
            self._running[name] = executor.submit(execute_run, job, resources=resources)
            del self._waiting[name]

    def _look(self) -> None:
        """Read how running runs are, and tell which have begun."""
        for name in self._running:
            before = self.records[name]
            now = self.records[name] = RunRecord.load(self._evaluation.runs / name)
            if now.state == "running" and before.state != "running":
                is_new = now.tries != before.tries
                text = f"try {now.tries}" if now.tries > 1 and is_new else ""
                self._tell(name, "begins" if is_new else "goes on", text)

    def _ended(self, name: str, future: Future[RunRecord]) -> None:
        """Note how a try ended, and have it tried again later if that is to be."""
        directory = self._evaluation.runs / name
        try:
            self.records[name] = future.result()
        except Exception as error:  # noqa: BLE001 - whatever became of the job, the other runs go on
            reason = str(error) if isinstance(error, ReBenchError) else f"{type(error).__name__}: {error}"
            self.records[name] = RunRecord.load(directory)
            failures = self.records[name].failures + 1
            state = "failed" if failures >= self._plan.tries else "waiting"
            self._change(name, state=state, failures=failures, reason=reason[:500], ended=utc())
        record = self.records[name]
        self._cap.end(name, cost_so_far(directory, record, self._plan))
        if record.state != "waiting":
            reward = "no valid attempt" if record.reward is None else f"reward {record.reward:z.4f}"
            self._tell(name, record.state, f"{record.reason}; {reward}" if record.state == "ended" else record.reason)
            return
        seconds = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** (record.failures - 1))
        self._waiting[name] = time.monotonic() + seconds
        self._tell(name, "tried again", f"in {seconds:g} s: {record.reason}")

    def note_how_all_stopped(self) -> None:
        """Note the runs that have ended while all were stopped."""
        for name in self._running:
            record = self.records[name] = RunRecord.load(self._evaluation.runs / name)
            if record.state == "ended":
                self._tell(name, "ended", record.reason)

    def _change(self, name: str, **changes: object) -> None:
        record = self.records[name] = self.records[name].model_copy(update=changes)
        record.save(self._evaluation.runs / name)

    def _tell(self, name: str, event: str, text: str | None = None) -> None:
        self._evaluation.note(event, run=name, text=text or "")
        now = dt.datetime.now().astimezone().strftime("%H:%M:%S")
        print_progress(f"{now} {name}: {printable(f'{event}: {text}' if text else event)}")
