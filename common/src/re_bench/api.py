"""The names that a task's ``score.py`` imports."""

from re_bench.data.provenance import hardware
from re_bench.errors import InvalidSubmissionError
from re_bench.sandbox.calls import SandboxedProcess
from re_bench.sandbox.process import Finished, shown_directory
from re_bench.scoring.score import main
from re_bench.task.interface import Job, Meter, RawScore, RunAnchors, Setup, StandIn, Task
from re_bench.timing import Time, check_not_slowed_down, check_steady, take_turns

__all__ = [
    "Finished",
    "InvalidSubmissionError",
    "Job",
    "Meter",
    "RawScore",
    "RunAnchors",
    "SandboxedProcess",
    "Setup",
    "StandIn",
    "Task",
    "Time",
    "check_not_slowed_down",
    "check_steady",
    "hardware",
    "main",
    "shown_directory",
    "take_turns",
]
