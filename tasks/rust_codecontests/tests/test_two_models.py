"""Two models of two servers, calibrated by the command itself: each has anchors of its own."""

from __future__ import annotations

import json
import shutil
import threading
import tomllib
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rust_codecontests import dataset, pool, problem_source

if TYPE_CHECKING:
    from collections.abc import Mapping

TASK = Path(__file__).parents[1]
NAMES = ("petal_pairs", "odd_tags", "uneven_badges")
TERMS = ("--model-price", "0", "0", "--model-context", "16000")


class Server(ThreadingHTTPServer):
    """Offers a model that knows answers by the beginnings of statements."""

    daemon_threads = True

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers = answers
        super().__init__(("127.0.0.1", 0), Answering)


class Answering(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_args: object) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompt = str(request["messages"][0]["content"])
        text = next((text for start, text in self.server.answers.items() if start in prompt), "I do not know.")
        message = {"role": "assistant", "content": text}
        body: dict[str, Any] = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": request["model"],
            "choices": [
                {"index": index, "message": message, "finish_reason": "stop"} for index in range(request.get("n") or 1)
            ],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.mark.slow  # tests/test_chosen_model.py shows it with a task whose scoring is quick
def test_each_model_has_its_anchors(python: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RE_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "none-is-needed-here")
    directories = [TASK / "rust_codecontests" / "problems" / "test" / name for name in NAMES]
    problems = [problem_source.make_problem(directory) for directory in directories]

    def build(directory: Path) -> dict[str, Any]:
        for split in dataset.SPLITS["paper"]:
            (directory / f"{split}.jsonl").write_text("".join(map(dataset.to_json_line, problems)))
        return {"profile": "paper", "key": dataset.key("paper")}

    dataset.entry("paper", dataset.SPLITS["paper"]).prepare(build, print)
    task = tmp_path / TASK.name
    shutil.copytree(TASK, task, ignore=shutil.ignore_patterns("problems", "tests", "cheats", "__pycache__"))
    programs = [pool.read(directory).correct[0].source for directory in directories]
    starts = [problem.description[:60] for problem in problems]
    fenced = {start: f"```rust\n{program}```" for start, program in zip(starts, programs, strict=True)}
    weak, strong = dict([*fenced.items()][:1]), {**fenced, starts[0]: programs[0]}  # bare, as the baseline needs it
    with ExitStack() as stack:
        for name, answers in (("weak", weak), ("strong", strong)):
            server = stack.enter_context(Server(answers))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            address = f"http://127.0.0.1:{server.server_address[1]}/v1"
            command = ("-m", "re_bench.cli", "calibrate", task, "--profile", "paper", "--model", name, *TERMS)
            done = python(*command, "--repeats", "1", OPENAI_BASE_URL=address)
            assert done.returncode == 0, done.stderr
    anchors = tomllib.loads((task / "anchors.toml").read_text())["profiles"]["paper"]["models"]
    assert [(entry["source"]["model"], entry["starting"], entry["reference"]) for entry in anchors] == [
        ("weak", 0.0, pytest.approx(1 / 3)),
        ("strong", pytest.approx(1 / 3), 1.0),
    ]
