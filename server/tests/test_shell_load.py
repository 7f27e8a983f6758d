"""Many sessions at once: each keeps its own state, none takes a thread, and the server's memory stays small."""

from __future__ import annotations

import asyncio
import gc
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from shell_session import processes_with, shell_in

if TYPE_CHECKING:
    from re_bench_server.shell.shell import Shell

SESSIONS, CALLS = 50, 5


def held_kib() -> int:
    """Return this process's own memory."""
    gc.collect()
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


async def opened(directory: Path) -> Shell:
    for name in ("workspace", "scratch"):
        (directory / name).mkdir(parents=True)
    return await shell_in(directory)


async def used(shell: Shell, number: int) -> None:
    await shell.run(f"n={number}; cd /tmp", 30)
    for _ in range(CALLS):
        output = await shell.run("n=$((n + 1)); echo $n $PWD", 30)
        number += 1
        assert (output.text, output.status) == (f"{number} /tmp\n", 0)


async def many(directory: Path) -> tuple[float, int]:
    first = await opened(directory / "first")
    await used(first, 0)
    before, threads = held_kib(), threading.active_count()
    shells = [await opened(directory / str(i)) for i in range(SESSIONS)]
    try:
        await asyncio.gather(*(used(shell, 1000 * i) for i, shell in enumerate(shells)))
        return (held_kib() - before) / SESSIONS, threading.active_count() - threads
    finally:
        await asyncio.gather(first.close(), *(shell.close() for shell in shells))


def test_many_sessions_at_once(tmp_path: Path) -> None:
    kib_each, threads = asyncio.run(many(tmp_path))
    assert kib_each < 1024
    assert threads <= 4  # the few that all sessions share
    assert processes_with(str(tmp_path)) == []
