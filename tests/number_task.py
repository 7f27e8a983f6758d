"""A task whose scoring takes a tenth of a second: the raw score is a number that the submission holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ANCHORS = """
[profiles.cpu.anchors]
starting = 0.0
reference = 10.0
source = {kind = "published", where = "here"}
"""


def write_number_task(task: Path, anchors: str = "") -> Path:
    """Write the task into a directory to be made, with these anchors of profile ``cpu``, and return it."""
    for name, value in (("baseline", "0"), ("reference", "10"), ("cheats/letters", "ten")):
        (task / name).mkdir(parents=True)
        (task / name / "number").write_text(value)
    (task / "task.toml").write_text(
        'id = "quick"\ntitle = "Quick"\ndescription = "A number"\nversion = 1\ndirection = "higher"\n'
        'aggregation = "max"\nunit = "points"\nsubmission = ["number"]\n'
        '[profiles.cpu]\ndescription = "small"\ndevice = "cpu"\ntime_limit_s = 30\n'
        '[profiles.gpu]\ndescription = "large"\ndevice = "cuda"\ntime_limit_s = 30\n' + anchors
    )
    (task / "cheats" / "letters" / "cheat.toml").write_text(
        'description = "words"\nexpect = "invalid"\nreason = "no number"\n'
    )
    (task / "score.py").write_text(
        "from re_bench.api import InvalidSubmissionError, RawScore, Task, main\n"
        "class Quick(Task):\n"
        "    profiles = {'cpu': None, 'gpu': None}\n"
        "    def score(self, job):\n"
        "        text = (job.submission / 'number').read_text()\n"
        "        if text != '2': (job.records / 'calls').write_text(text)\n"
        "        if text == 'bug': raise KeyError('ours')\n"
        "        try: return RawScore(float(text), 'fine')\n"
        "        except ValueError: raise InvalidSubmissionError('that is no number')\n"
        "if __name__ == '__main__': main(Quick())\n"
    )
    return task


def write_exportable_task(directory: Path) -> Path:
    """Write the task, with anchors, and all that an export needs, into ``directory/tasks/quick``; return that."""
    task = write_number_task(directory / "tasks" / "quick", ANCHORS)
    (task / "instructions.md").write_text("Write a large number.\n")
    (task / "Dockerfile").write_text(
        "# Build it so.\nFROM python:3.11-slim\nCOPY pins.txt \\\n  /opt/\nRUN useradd agent\n"
        "COPY --from=workspace --chown=agent:agent . /home/agent/solution/\nUSER agent\n"
    )
    (directory / "pins.txt").write_text("numpy==2.4.6\n")
    return task
