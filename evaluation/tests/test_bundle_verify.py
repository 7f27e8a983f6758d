"""Test the verification of untrusted bundles."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from evaluation_factory import Shape, make_evaluation, task_record
from strange_bundle import packed_by_a_stranger

from re_bench.attempts.log import Attempt, AttemptLog, encoded
from re_bench.attempts.store import Store
from re_bench.errors import UsageError
from re_bench.runs.regrade import Regraded, regrade
from re_bench.scoring.attempt import Score
from re_bench.task.discovery import task_named
from re_bench_evaluation.plan import Plan
from re_bench_evaluation.scan import scan
from re_bench_evaluation.verify import compare, verify

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench.records import TaskRecord
    from re_bench.task.discovery import TaskFolder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RE_BENCH_CACHE", str(tmp_path / "cache"))


def make(directory: Path, task: TaskRecord) -> Path:
    shape = Shape(agents=[("mlab", "m")], tasks=[task], runs=1, attempts=6, seed=2)
    evaluation = make_evaluation(directory / "evaluation", shape=shape)
    agents, models = {"mlab": {"kind": "mlab"}}, {"m": {"price": [1.0, 2.0]}}
    plan = Plan.model_validate({"tasks": [task.name], "runs": 1, "agents": agents, "models": models})
    change_json(evaluation / "evaluation.json", plan=plan.record())
    return evaluation


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def log_of(evaluation: Path) -> Path:
    return next(evaluation.glob("runs/*/server/sessions/*/attempts.jsonl"))


def test_valid_bundle_has_no_problems(tmp_path: Path) -> None:
    evaluation = make(tmp_path, task_record("alpha"))
    assert verify(packed_by_a_stranger(evaluation, tmp_path / "bundle")).problems == ()


@pytest.mark.parametrize("relative", [False, True])
def test_tasks_in_bundles_are_never_directories(
    made_up: TaskFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: bool
) -> None:
    """A directory as a task would run its scorer outside of the sandbox."""
    mark = tmp_path / "mark"
    (made_up.directory / "score.py").write_text(f"open({str(mark)!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    name = made_up.directory.name if relative else str(made_up.directory)
    evaluation = make(tmp_path, task_record("alpha"))
    for path in (evaluation / "evaluation.json", *evaluation.glob("runs/*/run.json")):
        path.write_text(path.read_text().replace('"alpha"', json.dumps(name)))
    log = log_of(evaluation)
    attempts = [replace(entry, task=name) for entry in AttemptLog(log).read().attempts]
    log.write_bytes(b"".join(encoded(entry) + b"\n" for entry in attempts))
    result = verify(packed_by_a_stranger(evaluation, tmp_path / "bundle"))
    assert {entry.outcome for entry in result.rescored} == {"not compared"}
    scan(evaluation)
    if not relative:  # a log may name a task in the working directory
        with pytest.raises(UsageError, match="there is no task"):
            regrade(log)
    assert not mark.exists()


@pytest.mark.parametrize("name", ["", ".", "/" * 64, "/etc".rjust(64, "/"), "../" * 21 + ".", "./" * 32, "\0" * 64])
def test_submission_hash_is_not_a_path(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path / "log")
    store.directory.mkdir()
    (store.directory / ("a" * 64)).symlink_to("/etc")
    assert store.find(name) is None
    assert store.find("a" * 64) is None


def scored(**changes: Any) -> Score:
    fields = {"task": "made_up", "profile": "cpu", "status": "valid", "raw": 1.0, "reward": 0.1, "message": ""}
    return Score(**{**fields, **changes})


@pytest.mark.parametrize(
    ("logged", "now", "outcome"),
    [
        ({}, {}, "agrees"),
        ({"private_raw": 9.0}, {"private_raw": 9.0}, "agrees"),
        ({"private_raw": 9.0}, {"private_raw": 1.0}, "differs"),
        ({"private_raw": 9.0}, {}, "differs"),
        ({}, {"private_raw": 1.0}, "differs"),
        ({"reward": None}, {}, "differs"),
    ],
)
def test_private_scores_are_compared(
    made_up: TaskFolder, monkeypatch: Any, logged: dict[str, Any], now: dict[str, Any], outcome: str
) -> None:
    monkeypatch.setattr("re_bench_evaluation.verify.task_named", lambda _name: made_up)
    fields = {"time": "", "task": "made_up", "profile": "cpu", "status": "valid", "raw": 1.0, "reward": 0.1}
    attempt = Attempt(**{"message": "", "n": 1, **fields, **logged})
    assert compare(Regraded(attempt, scored(**now)))[0] == outcome


@pytest.mark.parametrize(("claimed", "outcome"), [(0.25, "agrees"), (9.0, "differs")])
def test_instances_of_another_machine_have_a_wider_tolerance(
    made_up: TaskFolder, monkeypatch: Any, claimed: float, outcome: str
) -> None:
    monkeypatch.setattr("re_bench_evaluation.verify.task_named", lambda _name: made_up)
    fields: dict[str, Any] = {
        "time": "",
        "task": "made_up",
        "profile": "cpu",
        "status": "valid",
        "raw": 1.0,
        "reward": claimed,
    }
    attempt = Attempt(message="", n=1, **fields)
    assert compare(Regraded(attempt, scored(), other_instance=True))[0] == outcome
    assert compare(Regraded(attempt, scored()))[0] == "differs"
    assert compare(Regraded(attempt, scored(status="invalid"), other_instance=True))[0] == "differs"


def test_runs_that_were_not_scored_again_are_not_verified(tmp_path: Path) -> None:
    result = verify(packed_by_a_stranger(make(tmp_path, task_record("alpha")), tmp_path / "bundle"))
    assert (result.passed, result.verified, len(result.unchecked)) == (True, False, 1)


@pytest.mark.integration
@pytest.mark.parametrize(("spend", "scored"), [(0.0, 0), (15.0, 1), (20.0, 2)])
def test_models_are_called_only_within_what_may_be_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spend: float, scored: int
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    evaluation = make(tmp_path, task_record("rust_codecontests", profile="paper"))
    result = verify(packed_by_a_stranger(evaluation, tmp_path / "bundle"), sample=2, spend=spend)
    refused = ["up to 10 dollars with your API key" in entry.reason for entry in result.rescored]
    assert refused == [False] * scored + [True] * (2 - scored)


@pytest.mark.parametrize("terms", [3, {"dollars_in": []}, {"unknown": 1}, None])
def test_malformed_chat_models_are_a_problem(tmp_path: Path, terms: object) -> None:
    evaluation = make(tmp_path, task_record("alpha"))
    log = log_of(evaluation)
    details = {"model": "m", "model_terms": terms}
    attempts = [replace(entry, details=details) for entry in AttemptLog(log).read().attempts]
    log.write_bytes(b"".join(encoded(entry) + b"\n" for entry in attempts))
    problems = verify(packed_by_a_stranger(evaluation, tmp_path / "bundle"), sample=0).problems
    assert "attempt 1: a score's chat model is malformed" in problems[0]


@pytest.mark.parametrize("number", [10**400, "1e999", [[]], 1e300], ids=["huge", "text", "list", "large"])
def test_invalid_anchors(tmp_path: Path, number: object) -> None:
    evaluation = make(tmp_path, task_record("alpha"))
    anchors = {"starting": number, "reference": 1}
    log = log_of(evaluation)
    attempts = [replace(entry, details={"anchors": anchors}) for entry in AttemptLog(log).read().attempts]
    log.write_bytes(b"".join(encoded(entry) + b"\n" for entry in attempts))
    assert verify(packed_by_a_stranger(evaluation, tmp_path / "bundle"), sample=0).evaluation == "x"


def forge(evaluation: Path, **changes: Any) -> list[str]:
    """Return the problems of an evaluation whose attempts have these changes, packed as a stranger would."""
    log = log_of(evaluation)
    attempts = [replace(entry, **changes) for entry in AttemptLog(log).read().attempts]
    log.write_bytes(b"".join(encoded(entry) + b"\n" for entry in attempts))
    return list(verify(packed_by_a_stranger(evaluation, evaluation.with_name("bundle")), sample=0).problems)


VALID = {"status": "valid", "raw": 1.5, "reward": 0.5}
FORGED: dict[str, tuple[dict[str, Any], str]] = {
    "reward": (VALID | {"reward": 9.9}, "the reward 9.9 is not that of its raw score"),
    "anchors": (
        VALID | {"details": {"anchors": {"starting": 9.0, "reference": 8.0}}},
        "its anchors are not those of the task",
    ),
    "damaged anchors": (VALID | {"details": {"anchors": {"starting": 1, "reference": 1}}}, "anchors"),
    "no submission": (VALID | {"submission": ""}, "valid without a submission"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_attempts_are_problems(tmp_path: Path, name: str) -> None:
    changes, problem = FORGED[name]
    assert problem in str(forge(make(tmp_path, task_record("alpha")), **changes))


def test_forged_anchors_of_metr_are_problems(tmp_path: Path) -> None:
    version = task_named("small_scaling_law").manifest.version
    problem = "its anchors of METR are not those of the installed task"
    for profile, starting, forged in (("paper", 0.24, False), ("paper", -9.0, True), ("cpu", 0.24, True)):
        task = task_record("small_scaling_law", version=version, profile=profile)
        metr = {"starting": starting, "reference": 0.84, "reward": 0.5}
        evaluation = make(tmp_path / f"{profile} {starting}", task)
        assert (problem in str(forge(evaluation, **VALID, details={"metr": metr}))) is forged


def test_tasks_that_differ_from_the_installed_ones_are_problems(tmp_path: Path) -> None:
    version = task_named("small_scaling_law").manifest.version
    evaluation = make(tmp_path, task_record("small_scaling_law", version=version, aggregation="max"))
    task = json.loads((evaluation / "evaluation.json").read_text())["tasks"][0]
    change_json(evaluation / "evaluation.json", tasks=[task, task])
    problems = str(forge(evaluation))
    assert "small_scaling_law: more than one record of the task" in problems
    assert "small_scaling_law: aggregation is max, but last in the installed task" in problems
    assert "small_scaling_law: the anchors are not those of the installed task" in problems


def test_a_run_without_a_session_has_none(tmp_path: Path) -> None:
    evaluation = make(tmp_path, task_record("alpha"))
    for path in evaluation.glob("runs/*/run.json"):
        change_json(path, session=None, raw=None, reward=None)
    assert "run.json names no session, but there is one" in str(forge(evaluation))
