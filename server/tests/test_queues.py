"""Queues, GPUs and working time."""

from __future__ import annotations

import asyncio
import json
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from server_process import Raw, Server, until

from re_bench.attempts.elapsed import Elapsed
from re_bench.attempts.log import AttemptLog
from re_bench.cli.main import main
from re_bench.errors import UsageError
from re_bench.gpu import state
from re_bench.gpu.devices import dedicate_gpu
from re_bench.gpu.state import Gpu
from re_bench.machine_lock import exclusive
from re_bench_server.queues import GpuGate, Queue, SessionGpus, plan_gpus

if TYPE_CHECKING:
    from pathlib import Path


def test_queue_is_fifo() -> None:
    async def in_order() -> None:
        queue, order = Queue(2), list[int]()

        async def take(number: int) -> float:
            async with queue.slot() as waited:
                order.append(number)
                await asyncio.sleep(0.1)
                return waited

        tasks = [asyncio.create_task(take(number)) for number in range(6)]
        await asyncio.sleep(0.05)
        assert (queue.running, queue.waiting) == (2, 4)
        waits = await asyncio.gather(*tasks)
        assert order == list(range(6))
        assert max(waits[:2]) < 0.1 <= min(waits[4:]) + 1e-3
        assert (queue.running, queue.waiting) == (0, 0)

    asyncio.run(in_order())


def test_commands_wait_for_timed_scorings() -> None:
    async def alone() -> None:
        gate, events = GpuGate(), list[str]()

        async def score(name: str) -> float:
            async with gate.scoring() as waited:
                events.append(f"{name} begins")
                await asyncio.sleep(0.1)
                events.append(f"{name} ends")
                return waited

        async def command() -> float:
            waited = await gate.wait_until_idle()
            events.append("command")
            return waited

        assert await command() < 1
        scorings = [asyncio.create_task(score("first")), asyncio.create_task(score("second"))]
        await asyncio.sleep(0.05)
        assert await command() > 0.0
        assert (await scorings[1]) > 0.04
        assert events[:3] == ["command", "first begins", "first ends"]
        assert events.index("second begins") > 2

    asyncio.run(alone())


def test_commands_do_not_wait_for_another_gpu() -> None:
    async def apart() -> None:
        gate = GpuGate(separate=True)
        async with gate.scoring(), asyncio.timeout(60):
            await gate.wait_until_idle()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05), gate.scoring():
                    pass

    asyncio.run(apart())


@pytest.mark.integration
def test_waiting_for_other_programs_that_measure_time_does_not_count(server: Server) -> None:
    session = Raw(server, "example_quiet")
    session.says("echo 3 > answer.txt")
    with exclusive("the cores", "cores", "another job", wait_s=60):
        asked = session.start("answer")
        until(lambda: server.health()["scorings"]["running"] == 1)
        time.sleep(5)  # the scorer takes a moment to start
    assert session.result_of(asked, "answer")["metadata"]["waited_s"] > 1
    session.delete()
    assert any(record["waited_s"] > 1 for record in server.records().values())


@pytest.mark.integration
def test_waiting_does_not_count_as_working_time(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = Raw(server, "example_quick"), Raw(server, "example_quick")  # the server scores one at a time
    assert "Waits for the scoring queue or the GPU do not count" in first.prompt()
    for session, answer in ((first, f"wait {tmp_path}/go -1"), (second, "-2")):
        session.says(f"echo {answer} > answer.txt")
    first.start("answer")
    until(lambda: server.health()["scorings"]["running"] == 1)
    began = time.monotonic()
    asked = second.start("answer")
    until(lambda: server.health()["scorings"]["waiting"] == 1)
    time.sleep(1.1)  # shorter waits are not mentioned
    (tmp_path / "go").touch()
    waited = second.result_of(asked, "answer")
    spent = time.monotonic() - began
    waited_s, rounding = waited["metadata"]["waited_s"], 0.01
    assert 1 < waited_s < spent
    assert "in the queue. This does not count against your hours." in waited["blocks"][0]["text"]
    began = time.monotonic()
    second.call("answer", get_final_score=True)
    at_most_s = spent + time.monotonic() - began  # the last call may wait, too
    records = {name: record for name, record in server.records().items() if record["task"] == "example_quick"}
    name, record = next((name, record) for name, record in records.items() if record["waited_s"] > 1)
    assert waited_s - rounding <= record["waited_s"] <= at_most_s
    ((began_at, ended_at),) = record["periods"]
    assert ended_at - began_at == pytest.approx(record["used_s"] + record["waited_s"], abs=0.3)
    attempts = AttemptLog(server.state / "sessions" / name / "attempts.jsonl").read().attempts
    submitted = [Elapsed(attempt.wall_s or 0.0, attempt.working_s or 0.0) for attempt in attempts]
    assert submitted[0].waited_s == pytest.approx(0, abs=0.3)  # an attempt's own wait comes after its submission
    assert waited_s - rounding <= submitted[1].waited_s <= spent
    entry = json.loads((server.state / "sessions" / name / "transcript.jsonl").read_text().splitlines()[-1])
    assert waited_s - rounding <= entry["hours_waited"] * 3600 <= at_most_s
    assert main(["sessions", "list", "--json", "--state", str(server.state)]) == 0
    (shown,) = [one for one in json.loads(capsys.readouterr().out)["sessions"] if one["name"] == name]
    assert (shown["hours_used"] + shown["hours_waited"]) * 3600 == pytest.approx(ended_at - began_at, abs=0.5)
    for session in (first, second):
        session.delete()


GPUS = [Gpu(index, "NVIDIA H200", f"GPU-{index}", None, 3201.0, 6144) for index in range(4)]


def test_sessions_are_spread_over_gpus() -> None:
    gpus = SessionGpus(dedicate_gpu(GPUS[:3]))
    assert [gpus.assign(name) for name in "abcda"] == ["GPU-0", "GPU-1", "GPU-0", "GPU-1", "GPU-0"]
    for name in "bdd":
        gpus.release(name)
    assert [gpus.assign(name) for name in "ef"] == ["GPU-1", "GPU-1"]
    assert gpus.record() == {"scoring": "GPU-2", "sessions": {"GPU-0": 2, "GPU-1": 2}}
    shared = SessionGpus(dedicate_gpu(GPUS[:1], "0"))
    assert [shared.assign(name) for name in "ab"] == ["GPU-0", "GPU-0"]
    assert shared.record() == {"scoring": "GPU-0", "sessions": {"GPU-0": 2}}


def served(*devices: str) -> Any:
    return [SimpleNamespace(profile=SimpleNamespace(device=device)) for device in devices]


def test_operator_chooses_the_scoring_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "identify_all", lambda: GPUS[:2])
    plan = plan_gpus(served("cpu", "cuda"), "0")
    assert plan is not None
    assert (plan.timed, plan.other) == (("GPU-0",), ("GPU-1",))
    assert plan_gpus(served("cpu"), None) is None
    for devices, message in ((("cuda",), "no such GPU here; give the index"), (("cpu",), "no served profile needs")):
        with pytest.raises(UsageError, match=f"--scoring-gpu 7: .*{message}"):
            plan_gpus(served(*devices), "7")
