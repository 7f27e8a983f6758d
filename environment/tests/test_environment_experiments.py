"""A meter ends with its session, also one that was about to start."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from serving_help import until
from test_environment_life import given_to

from re_bench_environment.experiments import Experiments

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

SLOW = "import time\nprint('begins', flush=True)\ntime.sleep(60)\n"


async def silent(_experiments: Experiments, _reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(0.1)


async def asking(experiments: Experiments, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"[1, 2, 3]\n")
    log = experiments.socket.with_name("meter.log")
    await asyncio.to_thread(until, lambda: log.exists() and log.read_text())


async def asking_late(_experiments: Experiments, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"[1, 2, 3]\n")
    await asyncio.sleep(0)


@pytest.mark.parametrize("what", [silent, asking, asking_late])
def test_no_meter_outlives_its_session(
    tmp_path: Path, what: Callable[[Experiments, Any, Any], Awaitable[None]]
) -> None:
    asyncio.run(closed(tmp_path, what))
    until(lambda: given_to(tmp_path) == [], 2)


async def closed(place: Path, what: Callable[[Experiments, Any, Any], Awaitable[None]]) -> None:
    (place / "meter.py").write_text(SLOW)
    offer: Any = SimpleNamespace(task=SimpleNamespace(directory=place), profile_name="cpu")
    experiments = Experiments(offer, place / "socket", place / "state")
    await experiments.open()
    reader, writer = await asyncio.open_unix_connection(place / "socket")
    await what(experiments, reader, writer)
    async with asyncio.timeout(10):
        await experiments.close()
        writer.write_eof()
        assert b"listening" not in await reader.read()
    writer.close()
    await asyncio.sleep(0.2)
    assert given_to(place) == []
