"""A whole episode at a server through the official clients: triton_cumsum, from the baseline to the reference."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TASK = "triton_cumsum"
CLIENTS = ("openreward", "ors")
TOP = Path(__file__).resolve().parents[1]


@asynccontextmanager
async def session_of(client: str, url: str, token: str, task_id: str) -> AsyncIterator[tuple[Any, list[str]]]:
    """Open a session at the server with one of the :data:`CLIENTS`, and give it with the ids of all tasks there."""
    # Each client takes seconds to import.
    if client == "openreward":
        from openreward import AsyncOpenReward  # noqa: PLC0415

        one = AsyncOpenReward(api_key=token)
        environment: Any = one.environments.get("rebench", variant="rebench", base_url=url)
    else:
        from ors.client import AsyncORS  # noqa: PLC0415

        one = AsyncORS(base_url=url, api_key=token)
        environment = one.environment("rebench")
    try:
        tasks = {task.task_spec["id"]: task for task in await environment.list_tasks("test")}
        async with environment.session(tasks[task_id]) as session:
            yield session, sorted(tasks)
    finally:
        for opened in list(one.environments._clients.values()):  # noqa: SLF001 - they have no way to close
            await opened.close()
        await one.environments._get_connector().close()  # noqa: SLF001


async def play(client: str, url: str, token: str) -> dict[str, Any]:
    """Score the baseline, write the reference, score it as final; return what the tools said."""
    reference = base64.b64encode((TOP / "tasks" / TASK / "reference" / "solution.py").read_bytes()).decode()
    async with session_of(client, url, token, f"ai_rd_{TASK}") as (session, tasks):
        listed = await session.call_tool("bash", {"command": "id -u; ls"})
        first = await session.call_tool("answer", {})
        written = await session.call_tool("bash", {"command": f"echo {reference} | base64 -d > solution.py"})
        final = await session.call_tool("answer", {"get_final_score": True})
    return {
        "client": client,
        "tasks": tasks,
        "listed": "".join(block.text for block in listed.blocks).split(),
        "exit_status": written.metadata["exit_status"],
        "rewards": [first.reward, final.reward],
        "finished": [first.finished, final.finished],
    }


def main() -> int:
    """Play an episode with each client: ``python images/episode.py URL TOKEN_FILE``; one line of JSON for each."""
    url, token_file = sys.argv[1:]
    for client in CLIENTS:
        print(json.dumps(asyncio.run(play(client, url, Path(token_file).read_text(encoding="utf-8").strip()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
