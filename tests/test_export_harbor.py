"""Tasks as directories of Harbor: what is in them, the rewards, and the tool that scores attempts."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

from re_bench.data.files import sha256_of
from re_bench.export.task_facts import CANARY

sys.path.append(str(Path(__file__).parent))

from number_task import write_exportable_task

if TYPE_CHECKING:
    from collections.abc import Iterator

TOP = Path(__file__).resolve().parents[1]
TASKS = sorted(path.parent.name for path in (TOP / "tasks").glob("*/task.toml"))

QUICK = ("triton_cumsum",)
"""Tasks whose export takes no second: they have nothing prepared."""


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    """Return a task whose scoring takes a moment: the raw score is a number that the submission holds."""
    return write_exportable_task(tmp_path)


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def export(task: str | Path, directory: Path, *options: str) -> list[Path]:
    done = run("re_bench.cli", "export", "harbor", task, directory, "--profile", "cpu", "--json", *options)
    assert done.returncode == 0, done.stderr
    return [Path(entry["directory"]) for entry in json.loads(done.stdout)["directories"]]


def contents(directory: Path) -> dict[str, tuple[int, str]]:
    """Return mode and checksum of each file by its name."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): (path.stat().st_mode & 0o777, sha256_of(path)) for path in files}


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in TASKS]
)
def test_the_bytes_are_the_same_each_time_and_nothing_hidden_is_among_them(name: str, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        export(name, tmp_path / "one")
    finally:
        os.umask(before)
    export(name, tmp_path / "two")
    first = contents(tmp_path / "one")
    assert first == contents(tmp_path / "two")
    assert {mode for mode, _sum in first.values()} <= {0o644, 0o755}

    task = TOP / "tasks" / name
    hidden = [
        task / "score.py",
        *task.glob(f"{name}/**/grading.py"),
        *task.glob("cheats/*/*"),
        *task.glob("reference/*"),
    ]
    secret = {sha256_of(path) for path in hidden if path.is_file() and path.stat().st_size}
    assert secret
    of_agents = {entry for entry in first if not entry.startswith("solution/")}
    assert {entry for entry in of_agents if first[entry][1] in secret} == set()
    assert {entry for entry in of_agents if entry.startswith("tests/")} == {
        "tests/Dockerfile",
        "tests/docker-compose.yaml",
        "tests/test.sh",
    }
    lines = [tmp_path / "one" / file for file in ("instruction.md", "README.md", "task.toml", "solution/solve.sh")]
    assert [path for path in lines if CANARY not in path.read_text()] == []


def test_a_task_has_the_facts_that_readers_of_rewards_need(quick: Path, tmp_path: Path) -> None:
    (directory,) = export(quick, tmp_path / "out", "--hours", "2", "--verifier-image", "example.org/scorer:3")
    config = tomllib.loads((directory / "task.toml").read_text())
    assert config["task"] | {"keywords": 0} == {
        "name": "re-bench/quick",
        "version": "1",
        "description": "A number",
        "keywords": 0,
    }
    about = config["metadata"]["re_bench"]
    assert (about["profile"], about["anchors"][0]["reference"], about["tolerance"]["baseline"]) == ("cpu", 10.0, 0.05)
    assert config["verifier"]["environment_mode"] == "separate"
    assert config["verifier"]["environment"]["network_mode"] == "no-network"
    assert config["agent"] == {"timeout_sec": 7200.0, "user": "agent"}
    assert "ARG VERIFIER=example.org/scorer:3\n" in (directory / "tests" / "Dockerfile").read_text()
    dockerfile = (directory / "environment" / "Dockerfile").read_text()
    assert "COPY pins.txt \\\n  /opt/\n" in dockerfile
    assert "COPY --chown=agent:agent workspace/ /home/agent/solution/\n" in dockerfile
    assert "Build it so" not in dockerfile
    assert (directory / "environment" / "pins.txt").is_file()
    assert (directory / "environment" / "workspace" / "number").read_text() == "0"
    assert (directory / "instruction.md").read_text().startswith(f"<!-- {CANARY} -->\nWrite a large number.\n")


def test_each_cheat_is_a_task_of_its_own(quick: Path, tmp_path: Path) -> None:
    own, cheat = export(quick, tmp_path / "out", "--cheats")
    assert (own.name, cheat.name) == ("quick", "quick-cheat-letters")
    assert (own / "solution" / "files" / "number").read_text() == "10"
    assert (cheat / "solution" / "files" / "number").read_text() == "ten"
    metadata = tomllib.loads((cheat / "task.toml").read_text())["metadata"]["re_bench"]
    assert metadata["cheat"] == {"name": "letters", "expect": "invalid", "reason": "no number"}


@pytest.mark.parametrize(
    ("options", "change", "said"),
    [
        (["--cheats", "numbers"], "", "it has: letters"),
        (["--verifier-image", "two words"], "", "--verifier-image 'two words'"),
        (
            [],
            "COPY tasks/quick/reference /r/",
            "of a task an agent may see instructions.md, starter and baseline alone",
        ),
        ([], "COPY tasks /t/", "which is more than an agent may see"),
        ([], "COPY . /t/", "which is more than an agent may see"),
        ([], "COPY nowhere /t/", "nowhere is not in"),
        ([], "COPY --from=wheels . /t/", "no such context in an export"),
        ([], "RUN --mount=type=bind,from=wheels,target=/w ls", "a mount from 'wheels' cannot be exported"),
    ],
)
def test_what_cannot_be_exported_is_refused_and_leaves_nothing(
    quick: Path, tmp_path: Path, options: list[str], change: str, said: str
) -> None:
    with (quick / "Dockerfile").open("a") as file:
        file.write(f"{change}\n")
    done = run("re_bench.cli", "export", "harbor", quick, tmp_path / "out", "--profile", "cpu", *options)
    assert done.returncode in {1, 2}
    assert said in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_existing_directory_is_left_alone(quick: Path, tmp_path: Path) -> None:
    done = run("re_bench.cli", "export", "harbor", quick, tmp_path, "--profile", "cpu")
    assert done.returncode == 2
    assert "give a directory that does not exist yet" in done.stderr
    assert quick.is_dir()


def reward(quick: Path, number: str, *options: str | Path) -> tuple[int, object]:
    """Return the exit status of a verifier's program for a number, and what it tells Harbor."""
    workspace, out = quick.parents[1] / "workspace", quick.parents[1] / "verifier" / "reward.json"
    workspace.mkdir(exist_ok=True)
    (workspace / "number").write_text(number)
    module = "re_bench.export.harbor_reward"
    done = run(module, quick, "--solution", workspace, "--out", out, "--profile", "cpu", *options)
    return done.returncode, json.loads(out.read_text()) if out.exists() else None


def test_rewards_are_flat_finite_numbers_and_absent_where_we_fail(quick: Path) -> None:
    assert reward(quick, "5") == (0, {"reward": 0.5, "valid": 1.0, "raw": 5.0})
    assert reward(quick, "-30") == (0, {"reward": -3.0, "valid": 1.0, "raw": -30.0})
    assert reward(quick, "five") == (3, {"reward": 0.0, "valid": 0.0})
    assert reward(quick, "nan") == (3, {"reward": 0.0, "valid": 0.0})
    assert reward(quick, "bug") == (1, None)  # and the file of the scoring before is gone
    reward(quick, "5")
    assert reward(quick, "5", "--sandbox", "container")[1] is None


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
    return port


@contextmanager
def answering(task: Path, workspace: Path, log: Path) -> Iterator[str]:
    """Run the service with two attempts; give its address."""
    port = free_port()
    words = [task, "--workspace", workspace, "--log", log, "--attempts", 2, "--profile", "cpu"]
    words += ["--host", "127.0.0.1", "--port", port]
    command = [sys.executable, "-m", "re_bench.export.answer_server", *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


async def answer(address: str) -> str:
    """Call the tool as an agent's client does."""
    async with streamablehttp_client(address) as (read, write, _id), ClientSession(read, write) as session:
        await session.initialize()
        assert [tool.name for tool in (await session.list_tools()).tools] == ["answer"]
        result = await session.call_tool("answer", {})
    (content,) = result.content
    text: str = content.text  # type: ignore[union-attr] # it is text
    return text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_attempts_are_scored_on_the_way_and_the_best_counts(quick: Path, tmp_path: Path) -> None:
    workspace, log = tmp_path / "workspace", tmp_path / "attempts" / "attempts.jsonl"
    workspace.mkdir()
    with answering(quick, workspace, log) as address:
        (workspace / "number").write_text("7")
        assert "Attempt 1: raw score 7 points, reward 0.7000" in asyncio.run(answer(address))
        (workspace / "number").write_text("seven")
        told = asyncio.run(answer(address))
        assert re.search(r"Attempt 2: invalid.*that is no number.*0 attempts are left", told, re.DOTALL)
        assert "all 2 attempts are used up" in asyncio.run(answer(address))
    assert reward(quick, "3", "--log", log) == (0, {"reward": 0.7, "valid": 1.0, "raw": 7.0, "attempts": 3.0})


def test_an_export_with_attempts_has_a_service_that_the_agent_is_told_of(quick: Path, tmp_path: Path) -> None:
    (directory,) = export(quick, tmp_path / "out", "--attempts", "4")
    config = tomllib.loads((directory / "task.toml").read_text())
    assert config["environment"]["mcp_servers"][0]["url"] == "http://answer:8000/mcp"
    assert {"source": "/attempts", "service": "answer"} in config["artifacts"]
    compose = (directory / "environment" / "docker-compose.yaml").read_text()
    assert "answer_server, quick, --workspace, /workspace, --profile, cpu" in compose
    assert "up to 4 times; you are told its score" in (directory / "instruction.md").read_text()
    assert "--log /attempts/attempts.jsonl" in (directory / "tests" / "test.sh").read_text()
