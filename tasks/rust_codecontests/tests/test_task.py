"""The whole task: real gateway, stand-in model or a server of our own, real sandboxes and judge, on a few problems."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from re_bench.data.files import import_file
from re_bench.scoring.score import main
from re_bench.task.discovery import open_task
from re_bench_gateway import Budget, Settings, models_of, serving
from rust_codecontests import answers, dataset, problem_source, profiles
from rust_codecontests.judge import Judge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.integration

TASK = Path(__file__).parents[1]
score = import_file(TASK / "score.py", "rust_codecontests_score_2")
NAMES = ("beacon_pairs", "odd_tags", "kiln_firings")  # whose tests are soon made
KEY = "sk-proj-this-is-the-real-key-0123456789"
FUNCTION = "async def generate_solution(client, semaphore, problem):\n"


@pytest.fixture(scope="module")
def problems() -> list[dataset.Problem]:
    return [problem_source.make_problem(TASK / "rust_codecontests" / "problems" / "test" / name) for name in NAMES]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    for part in ("starter", "baseline"):
        shutil.copytree(TASK / part, directory, dirs_exist_ok=True)
    return directory


@pytest.fixture
def scored(
    workspace: Path, problems: Any, compiled: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Return a function that scores the workspace, with a module or a directory laid over it."""
    monkeypatch.setattr(score, "Judge", partial(Judge, cache=compiled))
    monkeypatch.setattr(dataset, "read", lambda _profile, _split: problems)

    def run(solution: str | Path, profile: str = "cpu", model: Sequence[str] = (), **changed: Any) -> dict[str, Any]:
        if isinstance(solution, Path):
            shutil.copytree(solution, workspace, dirs_exist_ok=True)
        else:
            (workspace / "solve_code_contests_rust.py").write_text(solution)
        monkeypatch.setitem(profiles.PROFILES, profile, replace(profiles.PROFILES[profile], **changed))
        with pytest.raises(SystemExit):
            main(score.RustCodeContests(), ["--solution", str(workspace), "--profile", profile, "--json", *model])
        outcome: dict[str, Any] = json.loads(capsys.readouterr().out)
        return outcome

    return run


def test_the_baseline_solves_nothing_with_one_call_each(scored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # with some draws of the model's answers each repeats so much of its problem that, as a whole, it is not the model's
    monkeypatch.setattr(profiles, "secret_seed", lambda _purpose: 0)
    outcome = scored(TASK / "baseline")
    assert (outcome["status"], outcome["raw"]) == ("valid", 0.0)
    assert outcome["message"] == "stand-in model: 0 of 3 problems solved"
    assert set(outcome["details"]["verdicts"]) == {"compile error"}
    assert outcome["details"]["usage"]["requests"] == 3
    assert outcome["details"]["usage"]["dollars"] > 0


@pytest.mark.slow  # nox -s score scores it on all problems
def test_the_reference_solves_most(scored: Any) -> None:
    outcome = scored(TASK / "reference")
    assert outcome["details"]["solved"] + outcome["details"]["private_solved"] >= 2, outcome


def test_a_spent_budget_leaves_the_rest_unsolved(scored: Any) -> None:
    outcome = scored(TASK / "baseline", budget=Budget(requests=1))
    assert outcome["status"] == "valid"
    assert outcome["details"]["failures"]["exception"] == 2  # which problem has an answer is up to chance
    assert "RateLimitError" in outcome["details"]["errors"][0]
    assert "exceeded your current quota" in outcome["details"]["errors"][0]
    assert outcome["details"]["usage"]["requests"] == 1
    assert outcome["details"]["usage"]["refused"] > 0


def test_nothing_is_spent_beyond_the_budget(scored: Any) -> None:
    outcome = scored(TASK / "cheats" / "over_budget", budget=Budget(tokens=10_000))
    usage = outcome["details"]["usage"]
    assert outcome["raw"] == 0.0
    assert 0 < usage["prompt_tokens"] + usage["completion_tokens"] <= 10_000
    assert usage["refused"] > 0


def test_what_a_submission_writes_into_the_gateway_s_log_is_bounded(scored: Any) -> None:
    solution = (
        "import openai\n"
        + FUNCTION
        + """\
    create = client.with_options(max_retries=0).chat.completions.create
    for size in (300_000, *[200_000] * 8):
        messages = [{"role": "user", "content": "Hello", "name": "x", "remark": size * "x"}]
        try:
            await create(model="gpt-3.5-turbo-0125", messages=messages, max_tokens=1)
            assert size < 262_144
        except openai.BadRequestError:
            assert size > 262_144
"""
    )
    outcome = scored(solution, log_bytes=1 << 20)
    assert (outcome["status"], outcome["details"]["failures"]) == ("valid", {"exception": 3})
    assert all(error.startswith("RateLimitError") for error in outcome["details"]["errors"])
    assert 5 <= outcome["details"]["usage"]["requests"] <= 9


def test_a_batch_that_cannot_be_interrupted_is_out_of_time(scored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_LATE_S", 0.1)
    outcome = scored("import time\n" + FUNCTION + "    time.sleep(0.8)\n    return 'fn main() {}'\n", batch_s=0.5)
    assert outcome["details"]["failures"] == {"out of time": 3}


class Server(ThreadingHTTPServer):
    """Offers the model: any prompt gets a program that prints 0, or the status that is set."""

    daemon_threads = True
    status = 200

    def __init__(self) -> None:
        self.keys: list[str | None] = []
        self.models: set[str] = set()
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_args: object) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.keys.append(self.headers["authorization"])
        self.server.models.add(request["model"])
        message = {"role": "assistant", "content": 'fn main() { println!("0"); }'}
        body: dict[str, Any] = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": f"{request['model']} of today",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }
        status = 400 if "stop" in request else self.server.status
        if status != 200:
            body = {"error": {"message": "no", "type": "invalid_request_error", "code": "invalid_api_key"}}
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server() as fake:
        threading.Thread(target=fake.serve_forever, daemon=True).start()
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{fake.server_address[1]}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield fake
        fake.shutdown()


ASKING = f"""
import os
{FUNCTION}
    assert not any(name.startswith("OPENAI") for name in os.environ)
    messages = [{{"role": "user", "content": problem["description"]}}]
    answer = await client.chat.completions.create(model="gpt-3.5-turbo", messages=messages)
    return answer.choices[0].message.content
"""


def test_the_real_model_is_asked_with_a_key_that_no_sandbox_has(scored: Any, server: Server) -> None:
    outcome = scored(ASKING, "paper")
    assert outcome["status"] == "valid", outcome["message"]
    details = outcome["details"]
    assert (details["failures"], sum(details["verdicts"].values())) == ({}, 3)
    assert details["model"] == profiles.MODEL
    assert details["usage"]["dollars"] == pytest.approx(3 * (100 * 0.5 + 10 * 1.5) / 1e6)
    assert outcome["message"].startswith(f"{profiles.MODEL}: ")
    assert details["answered_as"] == [f"{profiles.MODEL} of today"]
    assert details["anchors"]["source"] == "published"
    assert set(server.keys) == {f"Bearer {KEY}"}


def test_another_model_is_asked_by_the_same_submission(scored: Any, server: Server) -> None:
    terms = ("--model", "small-model", "--model-price", "2", "30", "--model-context", "8000")
    outcome = scored(ASKING, "paper", model=terms)
    assert (outcome["status"], outcome["reward"]) == ("valid", None), outcome["message"]
    assert outcome["message"].startswith("small-model: ")
    assert (outcome["details"]["model"], outcome["details"]["answered_as"]) == ("small-model", ["small-model of today"])
    assert outcome["details"]["usage"]["dollars"] == pytest.approx(3 * (100 * 2 + 10 * 30) / 1e6)
    assert server.models == {"small-model"}


def test_a_server_that_refuses_everything_is_no_fault_of_the_submission(scored: Any, server: Server) -> None:
    server.status = 401
    outcome = scored(TASK / "baseline", "paper")
    assert (outcome["status"], outcome["raw"]) == ("error", None)
    assert "are OPENAI_API_KEY and OPENAI_BASE_URL right?" in outcome["message"]


def test_calls_that_no_server_answers_are_no_error_of_ours(scored: Any, server: Server) -> None:
    outcome = scored(ASKING.replace("messages=messages", 'messages=messages, stop="x"'), "paper")
    assert (outcome["status"], outcome["details"]["failures"]) == ("valid", {"exception": 3})
    assert outcome["details"]["usage"]["requests"] == 0
    assert len(server.keys) == 4  # the last is the scorer's own


def test_without_a_key_there_is_no_score_of_profile_paper(
    workspace: Path, problems: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dataset, "read", lambda _profile, _split: problems)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SystemExit) as stopped:
        main(score.RustCodeContests(), ["--solution", str(workspace), "--profile", "paper"])
    assert stopped.value.code == 2
    assert "set OPENAI_API_KEY" in capsys.readouterr().err


@pytest.mark.parametrize("profile", ["cpu", "paper"])
def test_missing_problems_name_the_command(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any, profile: str
) -> None:
    monkeypatch.setenv("RE_BENCH_CACHE", str(tmp_path / "nothing"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(SystemExit) as stopped:
        main(score.RustCodeContests(), ["--solution", str(workspace), "--profile", profile])
    assert stopped.value.code == 2
    assert f"run: re-bench prepare rust_codecontests --profile {profile}" in capsys.readouterr().err


def test_agents_can_try_their_solution(workspace: Path, problems: Any, tmp_path: Path) -> None:
    (workspace / "data").mkdir()
    (workspace / "data" / "valid.jsonl").write_text("".join(map(dataset.to_json_line, problems)))
    (workspace / "double.rs").write_text("fn main() { println!(7); }")
    task = open_task(TASK)
    assert task.manifest.model is not None
    settings = Settings(
        upstream=profiles.stand_in(task, "cpu"),
        models=models_of(task.manifest.model),
        log=tmp_path / "calls.jsonl",
        tcp=True,
    )
    with serving(settings) as gateway:
        reach = {**os.environ, "OPENAI_BASE_URL": gateway.address or "", "OPENAI_API_KEY": gateway.token}
        commands = (("try_it.py", "--first", "2"), ("rust_tools.py", "double.rs", NAMES[0]))
        tried, judged = (
            subprocess.run([sys.executable, *command], cwd=workspace, env=reach, capture_output=True, text=True)  # noqa: PLW1510
            for command in commands
        )
    assert (tried.returncode, judged.returncode) == (0, 0), tried.stderr + judged.stderr
    assert {line.partition(":")[0] for line in tried.stdout.splitlines() if ": compile error: " in line} == {*NAMES[:2]}
    assert "0 of 2 solved: 0.000 +- 0.000" in tried.stdout
    assert "format argument must be a string literal" in judged.stdout


@pytest.fixture(scope="module")
def programs() -> Any:
    return import_file(TASK / "reference" / "programs.py", "rust_reference_programs")


MAIN = 'fn main() {\n    println!("1");\n}'


@pytest.mark.parametrize(
    "answer",
    [
        MAIN,
        f"```rust\n{MAIN}\n```",
        f"Sure!\n\n```\n{MAIN}\n```\nIt prints 1.",
        f"```rust\nfn main() {{}}\n```\nAnd in full:\n```rust\n{MAIN}\n```",
        f"Input:\n```\n1 2\n```\n{MAIN}\n\nThis is it.",
        f"```rust\n{MAIN}\n",
    ],
    ids=["bare", "fenced", "no language", "sketch first", "example first", "cut off"],
)
def test_the_reference_finds_the_program_in_an_answer(programs: Any, answer: str) -> None:
    assert programs.program_in(answer).strip() == MAIN


def test_the_reference_elects_what_agrees_with_most() -> None:
    votes = import_file(TASK / "reference" / "votes.py", "rust_reference_votes")
    assert votes.elected([["1", "2"], ["1", "3"], ["1", "3"]], [1, 1, 1]) == 1
    assert votes.elected([["1", None], ["1", "3"]], [1, 1]) == 1
    assert votes.elected([["1"], ["2"], ["2"]], [5, 1, 1]) == 0
    assert votes.elected([["1", None, None], ["2", "3", "3"]], [3, 1]) == 0
    made = votes.made_inputs(["3\n1 2 3\n"], "The first line has n (1 <= n <= 5000), then n numbers of at most 10^9.")
    assert made == votes.made_inputs(["3\n1 2 3\n"], "n at most 5000, numbers at most 10^9")
    assert max(map(len, made)) > 5_000
    assert votes.limits_in("1 <= n <= 5000, at most 10^9") == [5000, 10**9]


def test_the_instructions_state_the_budgets_and_the_times() -> None:
    text = (TASK / "instructions.md").read_text()
    for name, entry in profiles.PROFILES.items():
        budget = entry.budget
        row = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
        assert row.endswith(f"| {budget.dollars:g} | {budget.tokens:,} | {budget.requests:,} |")
        assert f"{entry.batch} problems at the same time, **{entry.batch_s:g} seconds" in text
