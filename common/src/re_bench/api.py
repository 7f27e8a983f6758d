"""The names that a task's ``score.py`` imports."""

from re_bench.errors import InvalidSubmissionError
from re_bench.sandbox.calls import SandboxedProcess
from re_bench.scoring.score import main
from re_bench.task.interface import Job, Meter, RawScore, RunAnchors, Setup, StandIn, Task

__all__ = [
    "InvalidSubmissionError",
    "Job",
    "Meter",
    "RawScore",
    "RunAnchors",
    "SandboxedProcess",
    "Setup",
    "StandIn",
    "Task",
    "main",
]
