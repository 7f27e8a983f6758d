"""The program that scores one attempt of a session: ``python -m re_bench_environment.scorer``.

It keeps a copy of the submission, for which the oldest ones make room, runs the task's scorer on the copy, appends the
attempt to the session's log, and prints ``{"score": ..., "final": ...}``. A server reads that; whatever it says has
been on the disk before. It gives up as soon as its stdin is closed, that is, when the server ends, however that ends.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

from re_bench.errors import ReBenchError
from re_bench.processes import cli_entry_point
from re_bench.runs.score_process import record, score_and_record
from re_bench.runs.submission_store import Store
from re_bench.scoring.score import Score
from re_bench.task.discovery import Task, open_task

__all__ = ["main"]


def main() -> None:
    """Do as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--task", "--submission", "--log"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--profile", required=True)
    parser.add_argument("--sandbox")
    parser.add_argument("--keep-mib", type=int, required=True)
    options = parser.parse_args()
    with cli_entry_point("scorer"):
        threading.Thread(target=_end_with_server, daemon=True).start()
        task = open_task(options.task)
        started = time.monotonic()
        Store(options.log).trim(options.keep_mib << 20)
        try:
            score, final = score_and_record(task, options.submission, options.profile, options.sandbox, options.log)
        except ReBenchError as error:
            print(f"scorer: {error}", file=sys.stderr, flush=True)
            score = _failed(task, options.profile, error, time.monotonic() - started)
            final = record(task, score, options.log)
    print(json.dumps({"score": score.to_dict(), "final": asdict(final)}, allow_nan=False), flush=True)


def _failed(task: Task, profile: str, error: ReBenchError, seconds: float) -> Score:
    return Score.error(task.name, profile, str(error), seconds=seconds)


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
