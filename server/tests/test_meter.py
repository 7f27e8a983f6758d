"""A meter ends with its session, even if it is just starting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from example_tasks import make_tasks
from server_process import command_lines_naming, until

from re_bench.task.discovery import open_task
from re_bench_server.catalog import ServedTask
from re_bench_server.services.meter import MeterProxy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

pytestmark = pytest.mark.integration

SLOW = "import time\nprint('begins', flush=True)\ntime.sleep(600)\n"


async def silent(_proxy: MeterProxy, _reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(0.1)


async def asking(proxy: MeterProxy, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"[1, 2, 3]\n")
    log = proxy.socket.with_name("meter.log")
    await asyncio.to_thread(until, lambda: log.exists() and log.read_text())


async def asking_late(_proxy: MeterProxy, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"[1, 2, 3]\n")
    await asyncio.sleep(0)


@pytest.mark.parametrize("what", [silent, asking, asking_late])
def test_meter_ends_with_its_session(tmp_path: Path, what: Callable[[MeterProxy, Any, Any], Awaitable[None]]) -> None:
    asyncio.run(closed(tmp_path, what))
    until(lambda: command_lines_naming(tmp_path) == [])


def meter_proxy(directory: Path, source: str) -> MeterProxy:
    task = open_task(make_tasks(directory / "site") / "equipped")
    task.scorer.write_text(source)
    assert task.manifest.meter is not None
    served = ServedTask(task, "cpu")
    return MeterProxy(served, task.manifest.meter, directory / "socket", directory / "state", {})


async def closed(directory: Path, what: Callable[[MeterProxy, Any, Any], Awaitable[None]]) -> None:
    proxy = meter_proxy(directory, SLOW)
    await proxy.open()
    reader, writer = await asyncio.open_unix_connection(directory / "socket")
    await what(proxy, reader, writer)
    async with asyncio.timeout(60):
        await proxy.close()
        writer.write_eof()
        assert b"listening" not in await reader.read()
    writer.close()
    await asyncio.sleep(0.2)  # a late start of the meter would happen now
    await asyncio.to_thread(until, lambda: command_lines_naming(directory) == [])
