"""Whole episodes, by both official clients, against one real server process."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from example_tasks import EXAMPLES
from server_process import CLIENTS, Raw, Server, opened, text

EXPERIMENT = (
    'import os, socket; s = socket.socket(socket.AF_UNIX); s.connect(os.environ["RE_BENCH_EXPERIMENTS"]); '
    's.sendall(b"[16, 20]\\n"); print(s.makefile().readline())'
)


def test_it_lists_one_environment_one_split_and_the_tasks(server: Server) -> None:
    assert server.get("/list_environments") == ["rebench"]
    assert server.get("/rebench/splits") == [{"name": "test", "type": "test"}]
    tools = {tool["name"]: tool for tool in server.get("/rebench/tools")["tools"]}
    assert set(tools) == {"bash", "answer"}
    assert tools["bash"]["input_schema"]["required"] == ["command"]
    assert tools["answer"]["input_schema"]["properties"]["get_final_score"]["default"] is False
    assert set(server.health()["tasks"]) == set(EXAMPLES)


@pytest.mark.parametrize("client", CLIENTS)
def test_an_episode(server: Server, client: str) -> None:
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
    """Write the answer and have it scored."""
    await session.call_tool("bash", {"command": f"echo {number} > answer.txt"})
    return await session.call_tool("answer", arguments)


def test_experiments_are_made_and_counted_outside_of_the_sandbox(server: Server) -> None:
    session = Raw(server, "example_equipped")
    for number in (1, 2):
        ran = session.call("bash", command=f"rm -rf *; python3 -c '{EXPERIMENT}'")["output"]
        assert ran["metadata"]["exit_status"] == 0, ran
        assert json.loads(ran["blocks"][0]["text"].splitlines()[0]) == {"run": number, "request": [16, 20]}
    (directory,) = [path for path in server.sessions() if (path / "experiments").exists()]
    assert len((directory / "experiments" / "ledger.jsonl").read_text().splitlines()) == 2
    refused = session.call("bash", command=f"python3 -c '{EXPERIMENT}'".replace("[16, 20]", "1" * 300))["output"]
    assert "a request is a line of JSON: [width, steps], all integers" in refused["blocks"][0]["text"]
    session.delete()
    assert sorted(path.name for path in directory.iterdir()) == ["meter.log", "session.json", "transcript.jsonl"]


def test_a_task_that_hides_its_score_says_nothing_of_it_before_the_end(server: Server) -> None:
    asyncio.run(hidden(server))


async def hidden(server: Server) -> None:
    async with opened("openreward", server.url, "example_quiet") as session:
        outcome = await answered(session, "3.0625")
        # The reward is the protocol's, for whoever trains; text and metadata are what agents are shown.
        assert outcome.reward == pytest.approx(0.765625)
        assert outcome.metadata["raw"] is None
        shown = text(outcome) + json.dumps(outcome.metadata)
        assert not [digits for digits in ("3.06", "0.76", ".765") if digits in shown]
        (ours,) = server.health()["sessions"]
        assert ours["best_reward"] is None
        last = await answered(session, "2", get_final_score=True)
        assert (last.reward, last.metadata["final"]["raw"]) == (0.5, 2.0)
        assert "raw score 2" in text(last)


def test_without_a_valid_attempt_the_end_is_a_finite_zero_and_says_so(server: Server) -> None:
    asyncio.run(all_invalid(server))


async def all_invalid(server: Server) -> None:
    async with opened("ors", server.url, "example_quick") as session:
        await answered(session, "nan")
        final = await answered(session, "x", get_final_score=True)
        assert (final.reward, final.finished, final.metadata["final"]["raw"]) == (0.0, True, None)
        assert "None of 2 attempts was valid" in text(final)
