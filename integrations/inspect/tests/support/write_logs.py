"""Run Inspect and write logs below a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspect_ai import Task, eval, eval_retry  # noqa: A004 - its name
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from logged_task import FAIL, made_up, plain, scripted

if TYPE_CHECKING:
    from pathlib import Path


def run(task: Task, directory: Path, epochs: int = 1, token_limit: int | None = None) -> EvalLog:
    """Run a task with its log in a directory, and return the log."""
    (log,) = eval(
        task, model="mockllm/model", epochs=epochs, token_limit=token_limit, log_dir=str(directory), display="none"
    )
    return log


def write_logs(top: Path) -> None:
    """Write all logs."""
    sessions = top / "workspaces"
    sessions.mkdir(parents=True)
    (sessions / FAIL).touch()
    failed = run(made_up(str(sessions)), top / "retried", epochs=3)
    (sessions / FAIL).unlink()
    eval_retry(failed, log_dir=str(top / "retried"), display="none")
    run(plain(), top / "plain")
    run(made_up(str(sessions)), top / "mixed", token_limit=300)
    run(made_up(str(sessions), hours=4.0), top / "mixed")
    run(made_up(str(sessions), version=4), top / "mixed")
    other = made_up(str(sessions))
    other.solver = scripted("train.py;-1", infos=True)
    log = read_eval_log(run(other, top / "eval").location)
    write_eval_log(log, top / "json" / "log.json")
    hostile(log, top / "hostile.eval")


def hostile(log: EvalLog, path: Path) -> None:
    """Write a log with a forged store."""
    (sample,) = log.samples or []
    (attempt,) = sample.store["SessionStore:attempts"]
    valid = attempt | {"status": "valid", "raw": 1.5, "reward": 0.5, "message": "<b>\x1b[31m\u202e</b>" * 9}
    nested: list[object] = []
    for _depth in range(150):
        nested = [nested]
    wrong = [{"raw": "1.5"}, {"raw": None}, {"status": "great"}, {"time": 7}, {"details": nested}, {"seconds": -1e999}]
    sample.store["SessionStore:attempts"] = [valid, *(valid | fault for fault in wrong), {"n": 1}, {}]
    sample.store["SessionStore:directory"] = "/etc"
    sample.store["SessionStore:final"] = {"raw": [], "reward": 1e308}
    sample.model_usage = {}
    log.eval.task_id = "hostile"
    log.eval.model = "../../\x07model" * 99
    log.eval.solver = "</script>" * 99
    second = sample.model_copy(update={"epoch": 2, "store": {"SessionStore:task": {"name": "made_up"}}})
    third = sample.model_copy(update={"epoch": 3, "store": {"SessionStore:task": ["no", "object"]}})
    log.samples = [sample, second, third]
    write_eval_log(log, path)
