"""What a server costs: a command over the protocol, laid out workspaces, many sessions at once, memory, the start."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "environment" / "tests"))

from server_process import TASKS, Server, events, make_tasks, opened, serving, until

from re_bench.limits import Limits
from re_bench.sandbox import open_backend
from re_bench.sandbox.process import run
from re_bench.sandbox.spec import SandboxSpec
from re_bench_environment.shell.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSIONS, CALLS, ROUNDS = 200, 5, 100
AT_ONCE = (1, 60, 200)
COMMAND = "true"
OK, STARTING = 200, 503


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, float]]:
    place, site = tmp_path_factory.mktemp("server"), make_tasks(tmp_path_factory.mktemp("site"))
    began = time.monotonic()
    with serving(place, site, "--max-sessions", str(SESSIONS)) as server:
        yield server, time.monotonic() - began


def shown(**figures: float) -> None:
    print(json.dumps({name: round(value, 4) for name, value in figures.items()}))


def resident_mib(server: Server) -> float:
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def test_start_to_ready(started: tuple[Server, float]) -> None:
    shown(start_to_ready_s=started[1], server_mib=resident_mib(started[0]))


def test_a_command(started: tuple[Server, float], tmp_path: Path) -> None:
    asyncio.run(commands(started[0], tmp_path))


async def commands(server: Server, tmp_path: Path) -> None:
    for name in ("workspace", "scratch"):
        (tmp_path / name).mkdir()
    backend, limits = open_backend(None), Limits()
    anew = [run(backend, ["true"], SandboxSpec(limits=limits)).seconds for _ in range(20)]
    arguments: dict[str, Any] = {"limits": limits, "environment": {}, "scratch": tmp_path / "scratch"}
    shell = await Shell.open(backend, tmp_path / "workspace", tmp_path / "home", **arguments)
    try:
        bare = [await timed(shell.run(COMMAND, 60)) for _ in range(ROUNDS)]
    finally:
        await shell.close()
    for client in ("openreward", "ors"):
        async with opened(client, server.url, "example_quick") as session:
            await session.call_tool("bash", {"command": COMMAND})
            over = [await timed(session.call_tool("bash", {"command": COMMAND})) for _ in range(ROUNDS)]
        shown(
            **{f"{client}_p50_ms": 1e3 * statistics.median(over), "in_the_shell_p50_ms": 1e3 * statistics.median(bare)},
            in_a_new_sandbox_p50_ms=1e3 * statistics.median(anew),
        )


async def timed(doing: Any) -> float:
    began = time.monotonic()
    await doing
    return time.monotonic() - began


@pytest.fixture(scope="module")
def of_all_tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place, site = tmp_path_factory.mktemp("tasks"), tmp_path_factory.mktemp("none")
    began = time.monotonic()
    with serving(place, site, "--prepare", "--max-sessions", str(max(AT_ONCE)), tasks=()) as server:
        shown(all_prepared_s=time.monotonic() - began)
        yield server


@pytest.mark.timeout(600)
@pytest.mark.parametrize("task_id", [*TASKS, "all in turns"])
def test_sessions_from_create_to_prompt(of_all_tasks: Server, task_id: str) -> None:
    asyncio.run(laid_out(of_all_tasks, [task_id] if task_id in TASKS else list(TASKS)))


async def laid_out(server: Server, task_ids: list[str]) -> None:
    """Create so many sessions at once, wait for the last prompt, and see what their workspaces take of the disk."""
    timeout = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(server.url, connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as http:
        for count in AT_ONCE:
            sids = [f"{count}-{number}" for number in range(count)]
            ids = [task_ids[number % len(task_ids)] for number in range(count)]
            seconds = await timed(asyncio.gather(*map(create, [http] * count, sids, ids)))
            disk = sum(path.lstat().st_blocks << 9 for path in server.state.glob("sessions/*/workspace/**/*"))
            print(", ".join(task_ids), end=" ")
            shown(sessions=count, last_prompt_s=seconds, disk_mib_each=disk / count / (1 << 20))
            await asyncio.gather(*(delete(http, sid) for sid in sids))
            until(lambda: server.sessions() == [], 120)


@pytest.mark.timeout(600)
def test_many_sessions(started: tuple[Server, float]) -> None:
    asyncio.run(many(started[0]))


async def many(server: Server) -> None:
    """Open all sessions and have each call bash five times, all at once; by plain HTTP: clients take a thread each."""
    before = resident_mib(server)
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(server.url, connector=connector, timeout=timeout) as http:
        sids = [f"session-{number}" for number in range(SESSIONS)]
        began = time.monotonic()
        await asyncio.gather(*(create(http, sid) for sid in sids))
        laid_out = time.monotonic() - began
        idle = resident_mib(server)
        for start in range(0, SESSIONS, 8):
            await asyncio.gather(*(call(http, sid) for sid in sids[start : start + 8]))
        opened_s = time.monotonic() - began
        open_mib = resident_mib(server)
        began = time.monotonic()
        seconds = [each for found in await asyncio.gather(*(calls(http, sid) for sid in sids)) for each in found]
        took = time.monotonic() - began
        await asyncio.gather(*(delete(http, sid) for sid in sids))
    assert len(seconds) == SESSIONS * CALLS
    seconds.sort()
    shown(
        sessions=SESSIONS, created_s=laid_out, all_open_s=opened_s, calls_s=took, p50_s=statistics.median(seconds),
        p95_s=seconds[int(0.95 * len(seconds))], max_s=seconds[-1],
        created_mib_each=(idle - before) / SESSIONS, open_mib_each=(open_mib - before) / SESSIONS,
    )  # fmt: skip


async def create(http: aiohttp.ClientSession, sid: str, task_id: str = "example_quick") -> None:
    headers, body = {"X-Session-ID": sid}, {"task_spec": {"id": task_id}, "env_name": "rebench"}
    async with http.post("/create", json=body, headers=headers) as answer:
        assert answer.status == OK, await answer.text()
    status = STARTING
    while status == STARTING:
        async with http.get("/rebench/prompt", headers=headers) as answer:
            status = answer.status
            assert status in {OK, STARTING}, await answer.text()


async def delete(http: aiohttp.ClientSession, sid: str) -> None:
    async with http.post("/delete", json={}, headers={"X-Session-ID": sid}) as answer:
        await answer.read()


async def calls(http: aiohttp.ClientSession, sid: str) -> list[float]:
    return [await timed(call(http, sid)) for _ in range(CALLS)]


async def call(http: aiohttp.ClientSession, sid: str) -> None:
    body = {"name": "bash", "input": {"command": "echo here"}}
    async with http.post("/rebench/call", json=body, headers={"X-Session-ID": sid}) as answer:
        found = events(await answer.read())
    output = json.loads("".join(data for name, data in found if name in {"chunk", "end"}))
    assert output["ok"], output
    assert output["output"]["blocks"][0]["text"] == "here\n[exit status 0]"
