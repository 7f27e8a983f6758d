"""Whether commands have a reward, and what a task spec says, by both official clients."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from server_process import CLIENTS, Server, opened, post, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUICK = {
    "id": "example_quick",
    "version": 1,
    "profile": "cpu",
    "anchors": {"starting": 0.0, "reference": -2.0, "kind": "published"},
}


@pytest.fixture(scope="module")
def no_reward(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("no_reward"), site, "--bash-reward", "none") as running:
        yield running


@pytest.mark.parametrize("client", CLIENTS)
def test_commands_have_no_reward_where_the_operator_says_so_and_attempts_have_theirs(
    no_reward: Server, client: str
) -> None:
    asyncio.run(episode(no_reward, client))


async def episode(server: Server, client: str) -> None:
    async with opened(client, server.url, "example_quick") as session:
        ran = await session.call_tool("bash", {"command": "echo -1.5 > answer.txt"})
        assert (ran.reward, ran.finished, ran.metadata["exit_status"]) == (None, False, 0)
        assert (await session.call_tool("answer", {})).reward == 0.75
        await session.call_tool("bash", {"command": "echo nonsense > answer.txt"})
        assert (await session.call_tool("answer", {})).reward == 0.0  # invalid: that is a judgement
        await session.call_tool("bash", {"command": "echo crash > answer.txt"})
        failed = await session.call_tool("answer", {})
        assert (failed.reward, failed.metadata["status"]) == (None, "error")
        await session.call_tool("bash", {"command": "echo 1 > answer.txt"})
        final = await session.call_tool("answer", {"get_final_score": True})
        assert (final.reward, final.finished) == (0.75, True)


def test_a_task_spec_says_what_is_served(no_reward: Server) -> None:
    status, listed = post(no_reward.url, "/rebench/tasks", {"split": "test"}, {})
    assert (status, json.loads(listed)["tasks"][0]) == (200, QUICK)
