"""The command ``evaluate``: agents and models at tasks, by a plan."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_jobs, add_json, add_ray, print_json
from re_bench.processes import print_progress

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from re_bench.records import RunRecord
    from re_bench_evaluation.directory import PlannedTask
    from re_bench_evaluation.plan import Plan
    from re_bench_evaluation.report.evaluation_tables import Estimate


def _options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run the agents and models of a plan at its tasks. The same command continues where it was stopped or killed. "
        "Exit status: 0 if all runs have ended, 1 if some failed or the cap on dollars kept them from starting, 2 if "
        "the plan cannot be carried out here, 130 after Ctrl-C, 143 after SIGTERM."
    )
    parser.add_argument("plan", metavar="PLAN.toml", type=Path, help="docs/evaluations.md explains its keys")
    parser.add_argument("--out", metavar="DIR", type=Path, help="the evaluation's directory (default: the plan's name)")
    parser.add_argument("--dry-run", action="store_true", help="check everything, show cells and what they may cost")
    add_jobs(parser, "as many runs as have room")
    add_ray(parser)
    add_json(parser)


def _evaluate(options: argparse.Namespace) -> int:
    from re_bench.cli.live import live_display
    from re_bench_evaluation.check import check, planned_tasks, prepare
    from re_bench_evaluation.directory import open_evaluation
    from re_bench_evaluation.plan import load_plan
    from re_bench_evaluation.report.evaluation_tables import CELL_HEADER, cell_table, cells, failures
    from re_bench_evaluation.scheduler import evaluate

    plan = load_plan(options.plan)
    directory = options.out or Path(plan.name or "evaluation")
    tasks, where = planned_tasks(plan, here=options.ray is None), options.plan.resolve().parent
    check(plan, where, tasks, options.ray)
    prepare(tasks)
    if options.dry_run:
        return _show(_estimate(plan, directory, tasks), as_json=options.json)
    with open_evaluation(directory, plan, options.plan.read_bytes(), tasks) as evaluation:
        shown: dict[str, RunRecord] = {}

        def display() -> tuple[str, Sequence[str], Sequence[Sequence[str]]]:
            return str(evaluation.plan.name), CELL_HEADER, [cell.row() for cell in cells(shown.copy().values())]

        try:
            with live_display(display, wanted=not options.json):
                runs = evaluate(evaluation, where, jobs=options.jobs, ray=options.ray, show=shown.update)
        except SystemExit:  # by a signal
            print_progress(f"re-bench: stopped; to continue in {evaluation.directory}, give the same command again")
            raise
    if options.json:
        listed = [run.model_dump(mode="json") for run in runs.values()]
        told = {"evaluation": evaluation.plan.name, "directory": str(evaluation.directory), "runs": listed}
        print_json(told | {"cells": [asdict(cell) for cell in cells(runs.values())]})
    else:
        print("\n".join([cell_table(runs.values()), *failures(runs.values())]))
    return 0 if all(run.state == "ended" for run in runs.values()) else 1


def _estimate(plan: Plan, directory: Path, tasks: list[PlannedTask]) -> Estimate:
    from re_bench.records import TaskRecord
    from re_bench_evaluation.directory import Evaluation, check_changes
    from re_bench_evaluation.report.evaluation_tables import estimate

    records = [TaskRecord.of(planned.task, planned.profile) for planned in tasks]
    check_changes(directory, plan, records)
    asking = [record.name for record in records if record.model is not None and not record.stand_in]
    unpriced = [name for name, model in plan.models.items() if model.price is None]
    return estimate(plan, Evaluation(directory, plan, records).planned_runs(), unpriced, asking)


def _show(estimated: Estimate, *, as_json: bool) -> int:
    from re_bench_evaluation.report.evaluation_tables import estimate_table

    if as_json:
        print_json(asdict(estimated))
    else:
        print(estimate_table(estimated))
    return 0


COMMAND = Command(
    "evaluate",
    "run agents and models at tasks, by a plan",
    _options,
    _evaluate,
    examples=("re-bench evaluate plan.toml --dry-run", "re-bench evaluate plan.toml --out evaluation/"),
)
