"""Whole episodes on the five tasks in profile cpu, by both official clients: start, a better submission, the end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from server_process import CLIENTS, INSIDE, TOP, Server, opened, serving, text, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

THREE_PASSES = TOP / "tasks" / "triton_cumsum" / "implementations" / "three_pass" / "solution.py"
ANSWER = '{"n_embd": 64, "max_iters": 8400, "loss_prediction": 1.7}'
BETTER: dict[str, tuple[dict[str, Path], str, float]] = {
    "ai_rd_fix_embedding": ({"empty.py": INSIDE / "no_embedding.py"}, "python empty.py", 0.1),
    "ai_rd_restricted_mlm": ({"model.py": INSIDE / "neighbours.py"}, "python model.py", 0.5),
    "ai_rd_rust_codecontests_inference": ({"solve_code_contests_rust.py": INSIDE / "unfenced.py"}, ":", 0.05),
    "ai_rd_small_scaling_law": ({}, f"echo '{ANSWER}' > answer.json", 0.4),
    "ai_rd_triton_cumsum": ({"solution.py": THREE_PASSES}, ":", 0.7),
}
"""By task: files to write, a command to type, and what the reward then is at least."""


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("five"), site, "--scorings", "2") as running:
        yield running


@pytest.mark.timeout(300)
@pytest.mark.parametrize("client", CLIENTS)
def test_whole_episodes_on_the_five_tasks_at_the_same_time(busy: Server, client: str) -> None:
    asyncio.run(episodes(busy, client))
    assert busy.health()["sessions"] == []


async def episodes(busy: Server, client: str) -> None:
    async with asyncio.TaskGroup() as group:
        for task in BETTER:
            group.create_task(episode(busy, client, task))


async def episode(busy: Server, client: str, task: str) -> None:
    files, command, least = BETTER[task]
    async with opened(client, busy.url, task) as session:
        prompt = (await session.get_prompt())[0].text
        assert "profile `cpu`" in prompt
        assert "/home/agent" in prompt
        start = await session.call_tool("answer", {})
        assert (start.metadata["status"], start.finished) == ("valid", False), text(start)
        assert start.reward == pytest.approx(0.0, abs=0.05)
        for name, file in files.items():
            await write(session, name, file.read_bytes())
        ran = await session.call_tool("bash", {"command": command})
        assert (ran.reward, ran.metadata["exit_status"]) == (0.0, 0), text(ran)
        end = await session.call_tool("answer", {"get_final_score": True})
        assert (end.metadata["status"], end.finished) == ("valid", True), text(end)
        assert end.reward == end.metadata["final"]["reward"] > least
        assert (end.metadata["attempt"], end.metadata["final"]["valid"]) == (2, 2)
        assert end.metadata["submission"] != start.metadata["submission"]
