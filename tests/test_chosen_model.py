"""Test replacing the task's chat model, with two servers on loopback."""

from __future__ import annotations

import json
import math
import threading
import tomllib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from re_bench.runs.regrade import Spending, regrade
from re_bench.task.chat_model import ChatModel
from re_bench.task.discovery import open_task
from re_bench.testing import run_command

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration

MANIFEST = """
id = "asking"
title = "Asking"
description = "A number that a model makes of another one"
version = 1
direction = "higher"
aggregation = "max"
unit = "points"
submission = ["number"]
[model]
name = "own"
key = ["paper"]
[profiles.cpu]
description = "without a model"
device = "cpu"
time_limit_s = 30
[profiles.paper]
description = "with one"
device = "cpu"
time_limit_s = 30
[profiles.paper.anchors]
starting = 1
reference = 101
source = {kind = "published", where = "nowhere"}
"""
SCORER = """
import json, os, urllib.request
from re_bench.api import RawScore, Task, main
class Asking(Task):
    profiles = {"cpu": None, "paper": None}
    def score(self, job):
        body = {"model": job.task.manifest.model.name, "number": int((job.submission / "number").read_text())}
        address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        with urllib.request.urlopen(address, json.dumps(body).encode()) as answer:
            return RawScore(float(json.load(answer)), "asked")
if __name__ == "__main__":
    main(Asking())
"""
TERMS = ("--model-price", "0", "0", "--model-context", "100")


class Server(ThreadingHTTPServer):
    """A server with one model, which maps a number to another."""

    daemon_threads = True

    def __init__(self, make: Callable[[int], int]) -> None:
        self.make, self.models = make, list[str]()
        super().__init__(("127.0.0.1", 0), Answering)


class Answering(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_args: object) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.models.append(request["model"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(self.server.make(request["number"])).encode())


@contextmanager
def serving(make: Callable[[int], int]) -> Iterator[Server]:
    with Server(make) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """Return a task with a baseline that submits 1 and a reference that submits 5."""
    task = tmp_path / "asking"
    for name, value in (("baseline", "1"), ("reference", "5")):
        (task / name).mkdir(parents=True)
        (task / name / "number").write_text(value)
    (task / "task.toml").write_text(MANIFEST)
    (task / "score.py").write_text(SCORER)
    (tmp_path / "submission").mkdir()
    (tmp_path / "submission" / "number").write_text("3")
    return task


def re_bench(server: Server, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_command(*arguments, OPENAI_BASE_URL=f"http://127.0.0.1:{server.server_address[1]}")


def test_models_have_separate_anchors_and_scores_name_them(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submission, log = task.with_name("submission"), task.with_name("attempts.jsonl")
    paper = ("--profile", "paper")
    with serving(lambda number: 2 * number) as doubling, serving(lambda number: number**2) as squaring:
        for server, name in ((doubling, "doubling"), (squaring, "squaring")):
            done = re_bench(server, "calibrate", task, *paper, "--model", name, *TERMS, "--repeats", "1")
            assert done.returncode == 0, done.stderr
        models = tomllib.loads((task / "anchors.toml").read_text())["profiles"]["paper"]["models"]
        figures = [(entry["source"]["model"], entry["starting"], entry["reference"]) for entry in models]
        assert figures == [("doubling", 2.0, 10.0), ("squaring", 1.0, 25.0)]

        done = re_bench(
            doubling, "score", task, submission, *paper, "--model", "doubling", *TERMS, "--log", log, "--json"
        )
        score = json.loads(done.stdout)
        assert (score["raw"], score["reward"], score["details"]["model"]) == (6.0, 0.5, "doubling")
        assert score["details"]["model_terms"] == {"dollars_in": 0, "dollars_out": 0, "context": 100, "max_output": 100}
        assert score["details"]["anchors"]["source"].startswith("stored: doubling, ")
        done = re_bench(squaring, "score", task, submission, *paper, "--model", "squaring", *TERMS, "--json")
        assert json.loads(done.stdout)["reward"] == pytest.approx(8 / 24)
        done = re_bench(squaring, "score", task, submission, *paper, "--model", "squaring", *TERMS, "--log", log)
        assert "has attempts with doubling; use another log for squaring" in done.stderr
        monkeypatch.setattr("re_bench.runs.regrade.task_named", lambda _name: open_task(task))
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{doubling.server_address[1]}")
        (unpaid,) = regrade(log)
        assert "dollars without a limit with your API key, and 0 are left of --spend" in unpaid.reason
        free = ChatModel("doubling", 0, 0, 100, 100)
        (regraded,) = regrade(log, spending=Spending(math.inf), model=free)
        assert regraded.score is not None
        assert (regraded.score.reward, regraded.score.details["model"]) == (0.5, "doubling")

        done = re_bench(squaring, "score", task, submission, *paper, "--json")  # the task's own model
        assert json.loads(done.stdout)["reward"] == pytest.approx(8 / 100)
        done = re_bench(squaring, "score", task, submission, *paper, "--model", "third", *TERMS)
        command = "re-bench calibrate asking --profile paper --model third --model-price 0.0 0.0 --model-context 100"
        assert f"raw 9 points, reward none (no anchors yet; run: {command}" in done.stdout
        assert squaring.models[-2:] == ["own", "third"]


def test_invalid_models_are_rejected(task: Path) -> None:
    submission = task.with_name("submission")
    with serving(lambda _number: 7) as constant:
        same = re_bench(constant, "calibrate", task, "--profile", "paper", "--model", "x", *TERMS, "--repeats", "1")
        other = re_bench(constant, "score", task, submission, "--profile", "cpu", "--model", "x", *TERMS)
        unknown = re_bench(constant, "score", task, submission, "--profile", "paper", "--model", "x")
    assert (same.returncode, other.returncode, unknown.returncode) == (1, 2, 2)
    assert "baseline and reference have the same raw score (7.0); nothing was written" in same.stderr
    assert not (task / "anchors.toml").exists()
    assert "profile cpu of asking uses no chat model that can be replaced; use --profile paper" in other.stderr
    assert "add --model-price IN OUT --model-context TOKENS" in unknown.stderr
