"""Whole episodes, by both official clients, against one real server process."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from server_process import CLIENTS, Raw, Server, opened, text

FIVE = [
    "ai_rd_fix_embedding",
    "ai_rd_restricted_mlm",
    "ai_rd_rust_codecontests_inference",
    "ai_rd_small_scaling_law",
    "ai_rd_triton_cumsum",
]


def test_it_lists_one_environment_one_split_and_the_tasks(server: Server) -> None:
    assert server.get("/list_environments") == ["rebench"]
    assert server.get("/rebench/splits") == [{"name": "test", "type": "test"}]
    tools = {tool["name"]: tool for tool in server.get("/rebench/tools")["tools"]}
    assert set(tools) == {"bash", "answer"}
    assert tools["bash"]["input_schema"]["required"] == ["command"]
    assert tools["answer"]["input_schema"]["properties"]["get_final_score"]["default"] is False
    assert set(server.health()["tasks"]) == {*FIVE, "example_quick", "example_quiet"}


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


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
def test_small_scaling_law_from_start_to_end(server: Server, client: str) -> None:
    asyncio.run(scaling_law(server, client))


async def scaling_law(server: Server, client: str) -> None:
    async with opened(client, server.url, "ai_rd_small_scaling_law") as session:
        assert "RE_BENCH_EXPERIMENTS" in (await session.get_prompt())[0].text
        start = await session.call_tool("answer", {})
        assert start.reward == pytest.approx(0.0, abs=1e-6)
        assert start.metadata["status"] == "valid"
        answer = json.dumps({"n_embd": 128, "max_iters": 1900, "loss_prediction": 2.0})
        await session.call_tool("bash", {"command": f"echo '{answer}' > answer.json"})
        final = await session.call_tool("answer", {"get_final_score": True})
        assert final.finished
        assert final.reward == final.metadata["final"]["reward"] != 0.0


def test_experiments_are_made_and_counted_outside_of_the_sandbox(server: Server) -> None:
    session = Raw(server, "ai_rd_small_scaling_law")
    session.call("bash", command="printf 'n_embd = 16\nmax_iters = 20\n' > small.py")
    for number in (1, 2):
        ran = session.call("bash", command="rm -f ledger.jsonl; python train.py small.py && cat runs/*.json")["output"]
        assert ran["metadata"]["exit_status"] == 0, ran
        outcome = json.loads(ran["blocks"][0]["text"].splitlines()[-2])
        assert (outcome["run"], outcome["n_embd"], outcome["max_iters"]) == (number, 16, 20)
    (place,) = [path for path in server.sessions() if (path / "experiments").exists()]
    assert len((place / "experiments" / "ledger.jsonl").read_text().splitlines()) == 2
    session.call("bash", command="printf 'n_embd = 512\nmax_iters = 20000\n' > large.py")
    refused = session.call("bash", command="python train.py large.py")["output"]
    assert refused["metadata"]["exit_status"] != 0
    assert "FLOPs" in refused["blocks"][0]["text"]
    session.delete()
    assert not place.exists()


def test_a_task_that_hides_its_score_says_nothing_of_it_before_the_end(server: Server) -> None:
    asyncio.run(hidden(server))


async def hidden(server: Server) -> None:
    async with opened("openreward", server.url, "example_quiet") as session:
        told = await answered(session, "3.0625")
        # The reward is the protocol's, for whoever trains; text and metadata are what agents are shown.
        assert told.reward == pytest.approx(0.765625)
        assert told.metadata["raw"] is None
        shown = text(told) + json.dumps(told.metadata)
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
