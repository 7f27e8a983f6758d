"""Reports that nobody has measured, of any size, for the tests of pages."""

from __future__ import annotations

import random

from re_bench_evaluation.report.data import (
    AnchorsInfo,
    AttemptInfo,
    Diff,
    EvaluationInfo,
    FileDiff,
    FindingInfo,
    Flag,
    Problem,
    ReportData,
    RunInfo,
    ScanInfo,
    Step,
    TaskInfo,
    ValidationInfo,
    ValidationRow,
)
from re_bench_evaluation.report.estimates import make_budgets, make_cells
from re_bench_evaluation.report.leaderboard import make_leaderboards

AGENTS = (("mlab", "gpt-large"), ("mlab", "small-7b"), ("other-agent", None))
_MANY = 10
_MODELLED = Flag("modelled", "the time is modelled from a replayed trace, not measured on a GPU")
_WORDS = ("loss", "batch", "cumsum", "kernel", "block", "mask", "scan", "tokens", "shift", "gate", "warmup", "tile")


def made_up_report(*, tasks: int = 2, runs: int = 3, attempts: int = 4, agents: int = 3, seed: int = 0) -> ReportData:
    """Return a report with so many runs of each agent at each task, and so many attempts in each run.

    Diffs and steps are as long as reading gives them room: shorter where there are many attempts.
    """
    draw = random.Random(seed)
    infos = tuple(_task(number) for number in range(tasks))
    more = [(f"agent-{n}", "gpt-large") for n in range(len(AGENTS), agents)]
    chosen: list[tuple[str, str | None]] = [*AGENTS[:agents], *more]
    all_runs = tuple(
        _run(draw, (agent, model), task, number, attempts)
        for task in infos
        for agent, model in chosen
        for number in range(runs)
    )
    by_key, tasks_by_key = {run.key: run for run in all_runs}, {task.key: task for task in infos}
    evaluations = {"made-up": _evaluation(all_runs[0].key if all_runs else None)}
    cells = make_cells(all_runs, tasks_by_key, curves=True)
    return ReportData(
        made="2026-11-22T12:00:00Z",
        evaluations=tuple(evaluations.values()),
        tasks=infos,
        leaderboards=tuple(make_leaderboards(cells, by_key, tasks_by_key, evaluations)),
        cells=tuple(cells),
        budgets=tuple(make_budgets(cells, by_key, tasks_by_key, evaluations)),
        runs=all_runs,
        problems=(Problem("runs/7/server/sessions/a/attempts.jsonl", "line 3 is torn; it counts nowhere"),),
    )


def _evaluation(run: str | None) -> EvaluationInfo:
    jump = FindingInfo("jump", "serious", "the reward rises by 0.9 from one attempt to the next", run, 2, "0.1 -> 1.0")
    several = FindingInfo("same_submission", "info", "two runs handed in the same bytes", None, None, "")
    scan = ScanInfo("2026-11-21T00:00:00Z", ("jump", "same_submission"), (jump, several), ("no trace of run 7",))
    versions = {"python": "3.11.7", "torch": "2.13.0", "re-bench-common": "0.1.0"}
    plan = {"name": "made-up", "runs": 3, "agents": [{"name": "mlab", "model": "gpt-large"}]}
    return EvaluationInfo(
        key="made-up",
        kind="evaluation",
        name="made-up",
        path="/data/made-up",
        created="2026-11-20T08:00:00Z",
        plan=plan,
        versions=versions,
        hardware="AMD EPYC, 16 cores",
        gpus=("NVIDIA H200",),
        scan=scan,
    )


def _task(number: int) -> TaskInfo:
    anchors = AnchorsInfo(
        3.25,
        1.5,
        "measured",
        "re-bench calibrate",
        "2 cores",
        None,
        "2026-10-01",
        52,
        5,
        0.0123,
        0.00456,
    )
    rows = tuple(
        ValidationRow(name, status, raw, reward, 0.01, 3, 12.5, holds=True, verdict=verdict)
        for name, status, raw, reward, verdict in (
            ("baseline", "valid", 3.25, 0.0, "about 0"),
            ("reference", "valid", 1.5, 1.0, "about 1"),
            ("cheats/returns_zero", "invalid", None, None, "refused as expected"),
        )
    )
    return TaskInfo(
        key=f"task_{number}/cpu/v1",
        name=f"task_{number}",
        id=f"re-bench/task_{number}",
        title=f"Make number {number} small",
        profile="cpu",
        version=1,
        direction="lower",
        aggregation="min",
        unit="log ms",
        anchors=anchors,
        modelled=number == 0,
        model="small-chat" if number == 1 else None,
        stand_in=number == 1,
        flags=(_MODELLED,) if number == 0 else (Flag("stand_in", "a stand-in of ours answers for the task's model"),),
        validation=None
        if number == 1
        else ValidationInfo("validate.json", "2026-11-01T00:00:00Z", holds=True, rows=rows),
    )


def _run(draw: random.Random, who: tuple[str, str | None], task: TaskInfo, number: int, attempts: int) -> RunInfo:
    agent, model = who
    made = []
    best, wall, working = None, 0.0, 0.0
    for n in range(1, attempts + 1):
        wall += draw.uniform(100, 2000)
        working = wall * 0.8
        valid = draw.random() > 0.25
        reward = draw.uniform(-0.3, 0.2 + n / attempts) if valid else None
        best = reward if best is None else best if reward is None else max(best, reward)
        made.append(_attempt(draw, n, (wall, working), reward, best, size=1 if attempts > _MANY else 12))
    return RunInfo(
        key=f"made-up/{task.name}-{agent}-{model}-{number}",
        path=f"/data/made-up/runs/{task.name}-{agent}-{number}",
        evaluation="made-up",
        agent=agent,
        model=model,
        task=task.key,
        seed=number,
        state="ended",
        reason="time",
        began="2026-11-20T08:00:00Z",
        ended="2026-11-20T16:00:00Z",
        wall_s=wall + 100,
        working_s=working + 80,
        dollars=draw.uniform(0.5, 12),
        task_dollars=None,
        tokens=draw.randrange(10**6),
        steps=draw.randrange(200),
        host="a",
        hardware="2 cores",
        tries=1,
        instances=(),
        scorers=("1",),
        sandboxes=("bubblewrap",),
        raw=2.0,
        reward=best,
        counted=max(best or 0.0, 0.0),
        torn=0,
        attempts=tuple(made),
    )


def _attempt(
    draw: random.Random, n: int, times: tuple[float, float], reward: float | None, best: float | None, *, size: int
) -> AttemptInfo:
    wall, working = times
    message = f"{2 - (reward or 0):.4f} ms" if reward is not None else f"row {draw.randrange(10**6)} is wrong by 0.25"
    words = min(8, 5 + size)
    changes = [(draw.choice("+- "), " ".join(draw.choices(_WORDS, k=words)), draw.random()) for _ in range(size)]
    lines = "".join(f"{sign}    {words} = {number:.6f}\n" for sign, words, number in changes)
    steps = tuple(
        Step(
            wall - 60 * k,
            "bash",
            f"python train.py --{draw.choice(_WORDS)} {draw.random():.4f}",
            f"loss {draw.random()}\n" * (size // 2),
        )
        for k in range(size // 4, -1, -1)
    )
    return AttemptInfo(
        n=n,
        time="2026-11-20T09:00:00Z",
        wall_s=wall,
        working_s=working,
        seconds=draw.uniform(1, 60),
        status="invalid" if reward is None else "valid",
        raw=None if reward is None else 3.25 - 1.75 * reward,
        reward=reward,
        final_raw=None,
        so_far=best,
        message=message,
        submission=draw.randbytes(32).hex(),
        kept=n % 5 != 0,
        refused_as=() if reward is not None else ("returns_zero",),
        diff=Diff(None if n == 1 else n - 1, (FileDiff("solution.py", "changed", f"@@ -1,9 +1,9 @@\n{lines}"),)),
        steps=steps,
        steps_left_out=n % 3,
    )
