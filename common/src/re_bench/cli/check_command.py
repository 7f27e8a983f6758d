"""The command ``re-bench check``: everything that is wrong with the files of tasks, at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_fix, add_json, print_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from re_bench.task.check_files import Problem, Report


def _check_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tasks", metavar="TASK", nargs="*", help="names or directories; without one, all tasks, and in a repository "
        "what it keeps about them",
    )  # fmt: skip
    add_fix(parser)
    add_json(parser)


def _check(options: argparse.Namespace) -> int:
    from re_bench.task.check import fix_all
    from re_bench.task.check_files import shown

    reports = _all_reports(options.tasks)
    fixed = fix_all(reports.values()) if options.fix else []
    reports = _all_reports(options.tasks) if fixed else reports
    problems = {name: report.problems for name, report in reports.items()}
    if options.json:
        rows = [
            {"task": name, "file": shown(one.path), "line": one.line, "problem": one.text, "fixable": bool(one.fix)}
            for name, found in problems.items()
            for one in found
        ]
        notes = [str(note) for report in reports.values() for note in report.notes]
        print_json({"checked": list(reports), "problems": rows, "fixed": [str(one) for one in fixed], "notes": notes})
    else:
        _print(reports, fixed)
    return 1 if any(problems.values()) else 0


def _all_reports(names: Sequence[str]) -> dict[str, Report]:
    """Return what was found, by task; without names also of the repository around us."""
    from re_bench.task.check import check_task
    from re_bench.task.check_files import Report
    from re_bench.task.discovery import repository_around, task_directories

    if names:
        return {directory.name: check_task(directory) for directory in map(_directory, names)}
    reports = {name: check_task(directory) for name, directory in task_directories().items()}
    if (top := repository_around(Path.cwd())) is not None:
        reports["the repository"] = Report(tuple(repository_problems(top)), ())
    return reports


def _directory(name: str) -> Path:
    """Return the directory of a task that may have a malformed manifest.

    Raises:
        UsageError: if there is none.
    """
    from re_bench.errors import UsageError
    from re_bench.task.discovery import task_directories, task_named

    if (Path(name) / "task.toml").is_file():
        return Path(name).resolve()
    known = task_directories()
    if name in known:
        return known[name]
    if os.sep in name or Path(name).is_dir():
        raise UsageError(f"{name}: no task.toml in it; give a task's directory")
    return task_named(name).directory


def repository_problems(top: Path) -> Iterator[Problem]:
    """Yield what is wrong with what a repository keeps about all tasks: lock files, and the table of results."""
    from re_bench.task.check import stale_locks

    yield from stale_locks(top)
    yield from _stale_results(top)


def _stale_results(top: Path) -> Iterator[Problem]:
    """Yield that the table of ``docs/science.md`` is not what anchors and records say."""
    from re_bench.cli.science import with_table
    from re_bench.task.check_files import Problem, line_with
    from re_bench.task.discovery import open_task
    from re_bench.task.manifest import RECORDS
    from re_bench.task.manifest_file import ManifestError

    path = top / "docs" / "science.md"
    if not path.is_file():
        return
    directories = sorted(record.parent for record in top.glob(f"tasks/*/{RECORDS}"))

    def page() -> str:
        return with_table(path.read_text(encoding="utf-8"), [open_task(directory) for directory in directories])

    try:
        stale = page() != (text := path.read_text(encoding="utf-8"))
    except ManifestError:
        return  # which the task's own check reports
    if stale:
        line = line_with(text, "<!-- table: results -->")
        what = "the table is not what anchors and records say: type re-bench check --fix"
        yield Problem(path, line, what, lambda: path.write_text(page(), encoding="utf-8"))


def _print(reports: dict[str, Report], fixed: list[Problem]) -> None:
    for problem in fixed:
        print(f"fixed: {str(problem).removesuffix(': type re-bench check --fix')}")
    for name, report in reports.items():
        for problem in report.problems:
            print(problem)
        for note in report.notes:
            print(f"note: {note}")
        if not report.problems:
            print(f"{name}: {'nothing is wrong' if report.is_checked else 'not checked'}")
    count = sum(len(report.problems) for report in reports.values())
    fixable = sum(problem.fix is not None for report in reports.values() for problem in report.problems)
    if count:
        print(f"{count} problem{'s' if count > 1 else ''}" + (f", {fixable} of them for --fix" if fixable else ""))


COMMANDS = (
    Command(
        "check",
        "list everything that is wrong with the files of tasks",
        _check_options,
        _check,
        group="task authors",
        examples=("re-bench check", "re-bench check triton_cumsum --fix"),
    ),
)
