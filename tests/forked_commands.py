"""The command ``re-bench`` and scorers in tests: forks of a process that has imported what most of them import.

A start takes 0.2 to 0.5 s of processor time less so. Each command, and each scorer, is started really somewhere too.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from forked_programs import Template

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

COMMANDS = Template(
    "re_bench.cli.main",
    "re_bench_evaluation.report.read",
    "re_bench.tables",
    "re_bench_evaluation.transcripts",
    "re_bench_evaluation.pack",
    "re_bench.runs.calibrate",
    "re_bench.doctor",
    "re_bench.runs.regrade",
    "re_bench.runs.validate",
    "re_bench_evaluation.work.work",
    "re_bench.task.check",
    "re_bench.task.new_task",
    "re_bench.task.prepare",
    "re_bench.task.workspace",
)


def re_bench(
    *arguments: str | Path, cwd: Path | None = None, fork: bool = True, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, with our environment variables and these."""
    command = [sys.executable, "-m", "re_bench.cli", *map(str, arguments)]
    options: dict[str, Any] = {"cwd": cwd, "env": os.environ | environment, "fork": fork}
    return COMMANDS.run(command, capture_output=True, text=True, **options)
