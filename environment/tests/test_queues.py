"""Queues: scorings wait for a slot, a timed one has the GPU alone, and callers learn how long they waited."""

from __future__ import annotations

import asyncio

import pytest

from re_bench_environment.queues import GpuGate, Queue


def test_slots_are_given_in_order_and_counted() -> None:
    asyncio.run(in_order())


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


def test_a_cancelled_wait_does_not_block_others() -> None:
    asyncio.run(giving_up())


async def giving_up() -> None:
    queue = Queue(1)
    async with queue.slot():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), queue.slot():
                pass
        assert (queue.running, queue.waiting) == (1, 0)
    async with asyncio.timeout(1), queue.slot():
        assert queue.running == 1


def test_no_command_begins_on_a_gpu_while_an_attempt_is_timed() -> None:
    asyncio.run(alone())


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
    assert events[0] == "command"
    assert events[1:3] == ["first begins", "first ends"]
    assert events.index("second begins") > 2


def test_commands_begin_while_an_attempt_is_timed_on_another_gpu() -> None:
    asyncio.run(apart())


async def apart() -> None:
    gate = GpuGate(separate=True)
    async with gate.scoring(), asyncio.timeout(1):
        await gate.wait_until_idle()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), gate.scoring():
                pass


def test_a_gate_opens_when_a_scoring_fails() -> None:
    asyncio.run(failing())


async def failing() -> None:
    gate = GpuGate()
    with pytest.raises(ZeroDivisionError):
        async with gate.scoring():
            raise ZeroDivisionError
    async with asyncio.timeout(1):
        await gate.wait_until_idle()
