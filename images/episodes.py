"""Test the server's image: run episodes with both official clients, and an agent in its own image."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from catalogue import TOP
from engines import EngineError

sys.path += [str(TOP / "tests"), str(TOP / "server" / "tests")]

from fake_server import FakeServer
from server_process import CLIENTS, opened, text, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engines import Engine

TASK = "triton_cumsum"
START_S = 180
EPISODE_S = 450
_TOLERANCE = 0.1
"""Tolerance for the rewards of the baseline (0) and the reference (1)."""


@contextlib.contextmanager
def serving(engine: Engine, tag: str, token_file: Path) -> Iterator[str]:
    """Run the server in its image on the loopback interface, and yield its address.

    Raises:
        EngineError: if the server does not start within :data:`START_S` seconds.
    """
    name = f"re-bench-images-{secrets.token_hex(4)}"
    options = [*engine.nested_sandbox, "--network=host", f"--name={name}"]
    program = ["python", "server/server.py", "--host", "127.0.0.1", "--port", "0", "--profile", "cpu"]
    program += ["--token-file", "/run/token", "--state", "/var/lib/re-bench"]
    mounted = f"--volume={token_file}:/run/token:ro"
    process = subprocess.Popen(
        [engine.command, "run", "--rm", *options, mounted, tag, *program],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(process.stderr or ()), daemon=True)
    reader.start()
    try:
        yield _address(process, lines)
    finally:
        subprocess.run([engine.command, "rm", "--force", name], capture_output=True, check=False)
        process.wait(60)
        reader.join()


def _address(process: subprocess.Popen[str], lines: list[str]) -> str:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        for line in list(lines):
            if line.startswith("{") and (event := json.loads(line))["event"] == "serving":
                return str(event["address"])
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise EngineError(f"the server did not start: {''.join(lines)[-1000:] or process.poll()}")


def check_server(engine: Engine, tag: str, agent: str | None) -> list[str]:
    """Test the server's image and, if ``agent`` is not None, an agent in the image with this tag.

    Return a line for each problem.
    """
    if not engine.runs_containers:
        done = engine.run(tag, ["sh", "-c", "re-bench tasks && re-bench serve --help && python -c 'import torch'"])
        return [] if done.returncode == 0 else [f"tasks, server or torch are missing: {done.stderr[-400:]}"]
    with tempfile.TemporaryDirectory() as place:
        token_file = Path(place) / "token"
        token = secrets.token_hex(16)
        token_file.write_text(token, encoding="utf-8")
        token_file.chmod(0o600)  # the server requires this mode
        with serving(engine, tag, token_file) as url:
            problems = list(_problems_of_episodes(url, token))
            return problems + _problems_of_agent(engine, agent, url, token) if agent else problems


def _problems_of_episodes(url: str, token: str) -> Iterator[str]:
    for client in CLIENTS:
        try:
            yield from asyncio.run(asyncio.wait_for(problems_of_episode(client, url, token), EPISODE_S))
        except Exception as error:  # noqa: BLE001 - clients raise many types
            yield f"{client}: episode failed: {type(error).__name__}: {error}"


async def problems_of_episode(client: str, url: str, token: str) -> list[str]:
    """Play an episode: score the baseline, then write and score the reference; return a line for each problem."""
    async with opened(client, url, f"ai_rd_{TASK}", token) as session:
        listed = text(await session.call_tool("bash", {"command": "id -u; ls"})).split()
        first = await session.call_tool("answer", {})
        await write(session, "solution.py", (TOP / "tasks" / TASK / "reference" / "solution.py").read_bytes())
        final = await session.call_tool("answer", {"get_final_score": True})
    problems = []
    if abs(first.reward) > _TOLERANCE or abs(final.reward - 1) > _TOLERANCE:
        problems.append(f"{client}: rewards {first.reward} and {final.reward}; expected about 0 and 1")
    if first.finished or not final.finished:
        problems.append(f"{client}: finished {first.finished} and {final.finished}; expected False and True")
    if listed[0] == "0" or "solution.py" not in listed:
        problems.append(f"{client}: user and workspace {listed}")
    return problems


def _problems_of_agent(engine: Engine, tag: str, url: str, token: str) -> list[str]:
    """Run the agent in its image with a scripted model on one of the server's tasks; return a line for each problem."""
    reference = (TOP / "tasks" / TASK / "reference" / "solution.py").read_text(encoding="utf-8")
    replies = iter(
        [
            _reply("List Files", {"directory": "."}),
            _reply("Write File", {"filename": "solution.py", "content": reference}),
            _reply("Final Answer", {"final_answer": "it is better"}),
        ]
    )
    with FakeServer(lambda _request: next(replies)) as model:
        command = ["mlab-agent", "--ors", url, "--task", f"ai_rd_{TASK}", "--run", "/tmp/run"]  # noqa: S108 - in a new container
        command += ["--token-variable", "ORS_TOKEN"]
        command += ["--model", "scripted", "--base-url", model.url, "--tools", "text", "--max-time", "10m"]
        options = ("--network=host", f"--env=ORS_TOKEN={token}", "--env=OPENAI_API_KEY=none")
        show = "cat /tmp/run/trace.jsonl | grep '\"final\"'"
        done = engine.run(tag, ["sh", "-c", f"{' '.join(command)} >&2 && {show}"], options=options)
    if done.returncode != 0:
        return [f"the agent's container exited with {done.returncode}: {done.stderr[-800:]}"]
    reward = json.loads(done.stdout.splitlines()[-1])["final"]["reward"]
    return [] if abs(reward - 1) <= _TOLERANCE else [f"the agent's reward is {reward}; expected about 1"]


def _reply(action: str, given: dict[str, str]) -> str:
    return (
        "Reflection: none\nResearch Plan and Status: score, improve, score again\nFact Check: nothing new\n"
        f"Thought: go on\nAction: {action}\nAction Input: {json.dumps(given)}"
    )
