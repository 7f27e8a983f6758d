"""What is kept of a log of Inspect after it was read once: its runs, as files of an evaluation, and this record."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from re_bench.records import Record, RunRecord, TaskRecord

VERSION = 1
"""Of what a log becomes; to be raised with every change, so that logs are read again."""


class ConvertedSample(BaseModel):
    """A sample in one epoch: a run."""

    id: str
    epoch: int
    uuid: str
    """The same in every log that it was copied to."""
    directory: str
    """Beside the record; it has what a run's directory has, but ``run.json``."""
    task: TaskRecord
    run: RunRecord


class ConvertedLog(Record):
    """The file ``log.json``."""

    task_id: str = ""
    """The same in every log of one task that was tried again."""
    created: str = ""
    status: str = ""
    expected: int = 0
    """How many samples, epochs counted, its evaluation has."""
    samples_logged: int = 0
    """How many of them the log has, in whatever state."""
    plan: dict[str, Any] = Field(default_factory=dict)
    """What its runs had in common, which others that they are averaged with must have had, too."""
    versions: dict[str, str] = Field(default_factory=dict)
    samples: tuple[ConvertedSample, ...] = ()
    problem: str = ""
    """Why nothing of it can be read."""
    problems: dict[str, str] = Field(default_factory=dict)
    """What of its samples cannot be read, by their names in the log."""

    @classmethod
    def file_name(cls) -> str:
        """Return the name of the file."""
        return "log.json"
