"""Whole episodes with both official clients on a real server."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from example_tasks import EXAMPLES, experiment_command
from server_process import CLIENTS, Raw, Server, opened, post, serving, text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration


def test_list_environment_splits_and_tools(server: Server) -> None:
    assert server.get("/list_environments") == ["rebench"]
    assert server.get("/rebench/splits") == [{"name": "test", "type": "test"}]
    tools = {tool["name"]: tool for tool in server.get("/rebench/tools")["tools"]}
    assert set(tools) == {"bash", "answer"}
    assert tools["bash"]["input_schema"]["required"] == ["command"]
    assert tools["answer"]["input_schema"]["properties"]["get_final_score"]["default"] is False
    assert set(server.health()["tasks"]) == set(EXAMPLES)


@pytest.mark.parametrize("client", CLIENTS)
def test_episode(server: Server, client: str) -> None:
    asyncio.run(episode(server, client))


async def episode(server: Server, client: str) -> None:
    async with opened(client, server.url, "example_quick") as session:
        prompt = (await session.get_prompt())[0].text
        assert prompt.startswith("# quick")
        assert "profile `cpu`" in prompt
        ran = await session.call_tool("bash", {"command": "cat notes.md; (exit 3)"})
        assert (text(ran), ran.reward, ran.finished) == ("a note\n[exit status 3]", 0.0, False)
        assert ran.metadata["exit_status"] == 3
        first = await session.call_tool("answer", {})
        assert (first.reward, first.finished) == (0.0, False)
        assert (first.metadata["status"], first.metadata["attempt"], first.metadata["raw"]) == ("valid", 1, 0.0)
        assert len(first.metadata["submission"]) == 64
        better = await answered(session, "-1.5")
        assert (better.reward, better.metadata["raw"]) == (0.75, -1.5)
        assert "reward 0.7500" in text(better)
        wrong = await answered(session, "nonsense")
        assert (wrong.reward, wrong.metadata["status"]) == (0.0, "invalid")
        assert "'nonsense' is no number" in text(wrong)
        final = await answered(session, "1", get_final_score=True)
        assert (final.reward, final.finished) == (0.75, True)
        assert final.metadata["final"] == {
            "raw": -1.5, "reward": 0.75, "aggregation": "min", "attempts": 4, "valid": 3,
        }  # fmt: skip


async def answered(session: Any, number: str, **arguments: bool) -> Any:
    """Write the answer and score it."""
    await session.call_tool("bash", {"command": f"echo {number} > answer.txt"})
    return await session.call_tool("answer", arguments)


def test_experiments_are_counted_outside_the_sandbox(server: Server) -> None:
    session = Raw(server, "example_equipped")
    for number in (1, 2):
        ran = session.call("bash", command=f"rm -rf *; {experiment_command(16)}")["output"]
        assert ran["metadata"]["exit_status"] == 0, ran
        assert json.loads(ran["blocks"][0]["text"].splitlines()[0]) == {"run": number, "request": [16, 20]}
    (directory,) = [path for path in server.sessions() if (path / "experiments").exists()]
    assert len((directory / "experiments" / "ledger.jsonl").read_text().splitlines()) == 2
    refused = session.call("bash", command=experiment_command(16).replace("[16, 20]", "1" * 300))["output"]
    assert "a request is a line of JSON: [width, steps], all integers" in refused["blocks"][0]["text"]
    session.delete()
    assert sorted(path.name for path in directory.iterdir()) == ["meter.log", "session.json", "transcript.jsonl"]


def test_hidden_score_is_not_revealed_before_the_end(server: Server) -> None:
    asyncio.run(hidden(server))


async def hidden(server: Server) -> None:
    async with opened("openreward", server.url, "example_quiet") as session:
        outcome = await answered(session, "3.0625")
        # The protocol's reward is for trainers; agents see text and metadata.
        assert outcome.reward == pytest.approx(0.765625)
        assert outcome.metadata["raw"] is None
        shown = text(outcome) + json.dumps(outcome.metadata)
        assert not [digits for digits in ("3.06", "0.76", ".765") if digits in shown]
        (ours,) = server.health()["sessions"]
        assert ours["best_reward"] is None
        last = await answered(session, "2", get_final_score=True)
        assert (last.reward, last.metadata["final"]["raw"]) == (0.5, 2.0)
        assert "raw score 2" in text(last)


def test_final_reward_is_zero_without_valid_attempts(server: Server) -> None:
    asyncio.run(all_invalid(server))


async def all_invalid(server: Server) -> None:
    async with opened("ors", server.url, "example_quick") as session:
        await answered(session, "nan")
        final = await answered(session, "x", get_final_score=True)
        assert (final.reward, final.finished, final.metadata["final"]["raw"]) == (0.0, True, None)
        assert "None of 2 attempts was valid" in text(final)


QUICK = {
    "id": "example_quick",
    "version": 1,
    "profile": "cpu",
    "anchors": {"starting": 0.0, "reference": -2.0, "kind": "published"},
}


@pytest.fixture(scope="module")
def no_reward(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Iterator[Server]:
    with serving(
        tmp_path_factory.mktemp("no_reward"), site, "--bash-reward", "none", "--reward-floor", "-1"
    ) as running:
        yield running


@pytest.mark.parametrize("client", CLIENTS)
def test_bash_reward_none(no_reward: Server, client: str) -> None:
    asyncio.run(episode_without_bash_reward(no_reward, client))


def test_reward_floor(no_reward: Server) -> None:
    session = Raw(no_reward, "example_quick")
    for written, status, reward in (("10", "valid", -1.0), ("nonsense", "invalid", -1.0), ("-1", "valid", 0.5)):
        session.call("bash", command=f"echo {written} > answer.txt")
        output = session.call("answer")["output"]
        assert (output["metadata"]["status"], output["reward"]) == (status, reward)
    assert session.call("answer", get_final_score=True)["output"]["reward"] == 0.5
    session.delete()
    hopeless = Raw(no_reward, "example_quick")
    hopeless.call("bash", command="echo nonsense > answer.txt")
    assert hopeless.call("answer", get_final_score=True)["output"]["reward"] == -1.0
    hopeless.delete()


async def episode_without_bash_reward(server: Server, client: str) -> None:
    async with opened(client, server.url, "example_quick") as session:
        ran = await session.call_tool("bash", {"command": "echo -1.5 > answer.txt"})
        assert (ran.reward, ran.finished, ran.metadata["exit_status"]) == (None, False, 0)
        assert (await session.call_tool("answer", {})).reward == 0.75
        await session.call_tool("bash", {"command": "echo nonsense > answer.txt"})
        assert (await session.call_tool("answer", {})).reward == -1.0  # invalid, not an error
        await session.call_tool("bash", {"command": "echo crash > answer.txt"})
        failed = await session.call_tool("answer", {})
        assert (failed.reward, failed.metadata["status"]) == (None, "error")
        await session.call_tool("bash", {"command": "echo 1 > answer.txt"})
        final = await session.call_tool("answer", {"get_final_score": True})
        assert (final.reward, final.finished) == (0.75, True)


def test_task_spec(no_reward: Server) -> None:
    status, listed = post(no_reward.url, "/rebench/tasks", {"split": "test"}, {})
    assert (status, json.loads(listed)["tasks"][0]) == (200, QUICK)
