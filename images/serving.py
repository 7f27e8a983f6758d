"""Test the server's image: run episodes with both official clients, and an agent in its own image."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalogue import TOP
from engines import EngineError

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from fake_server import FakeServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from engines import Engine

TASK = "triton_cumsum"
CLIENTS = ("openreward", "ors")
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
    """Test the server's image, also with the agent image ``agent`` if it is given; return a line for each problem."""
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
            played = asyncio.run(asyncio.wait_for(play(client, url, token), EPISODE_S))
        except Exception as error:  # noqa: BLE001 - clients raise many types
            yield f"{client}: episode failed: {type(error).__name__}: {error}"
        else:
            yield from problems_of_episode(played)


@contextlib.asynccontextmanager
async def session_of(client: str, url: str, token: str, task_id: str) -> AsyncIterator[tuple[Any, list[str]]]:
    """Open a session with one of the :data:`CLIENTS`; yield the session and the ids of the server's tasks."""
    # Importing a client takes seconds.
    if client == "openreward":
        from openreward import AsyncOpenReward  # noqa: PLC0415

        one = AsyncOpenReward(api_key=token)
        environment: Any = one.environments.get("rebench", variant="rebench", base_url=url)
    else:
        from ors.client import AsyncORS  # noqa: PLC0415

        one = AsyncORS(base_url=url, api_key=token)
        environment = one.environment("rebench")
    try:
        tasks = {task.task_spec["id"]: task for task in await environment.list_tasks("test")}
        async with environment.session(tasks[task_id]) as session:
            yield session, sorted(tasks)
    finally:
        for opened in list(one.environments._clients.values()):  # noqa: SLF001 - there is no public close()
            await opened.close()
        await one.environments._get_connector().close()  # noqa: SLF001


async def play(client: str, url: str, token: str) -> dict[str, Any]:
    """Play an episode: score the baseline, then write and score the reference; return the results of the tool calls."""
    reference = base64.b64encode((TOP / "tasks" / TASK / "reference" / "solution.py").read_bytes()).decode()
    async with session_of(client, url, token, f"ai_rd_{TASK}") as (session, tasks):
        listed = await session.call_tool("bash", {"command": "id -u; ls"})
        first = await session.call_tool("answer", {})
        written = await session.call_tool("bash", {"command": f"echo {reference} | base64 -d > solution.py"})
        final = await session.call_tool("answer", {"get_final_score": True})
    return {
        "client": client,
        "tasks": tasks,
        "listed": "".join(block.text for block in listed.blocks).split(),
        "exit_status": written.metadata["exit_status"],
        "rewards": [first.reward, final.reward],
        "finished": [first.finished, final.finished],
    }


def problems_of_episode(played: dict[str, Any]) -> list[str]:
    """Return a line for each problem in the result of :func:`play`."""
    problems = []
    rewards, listed, tasks = played["rewards"], played["listed"], played["tasks"]
    near = [abs(reward - wanted) <= _TOLERANCE for reward, wanted in zip(rewards, (0, 1), strict=True)]
    if not all(near):
        problems.append(f"{played['client']}: rewards {rewards}; expected about 0 and 1")
    if len(tasks) != len(list(TOP.glob("tasks/*/task.toml"))):
        problems.append(f"{played['client']}: tasks {tasks}")
    if played["finished"] != [False, True]:
        problems.append(f"{played['client']}: finished {played['finished']}")
    if listed[0] == "0" or "solution.py" not in listed:
        problems.append(f"{played['client']}: user and workspace {listed}")
    return problems


def _problems_of_agent(engine: Engine, tag: str, url: str, token: str) -> list[str]:
    """Run the agent in its image, with a scripted model, on a task of the server; return a line for each problem."""
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
