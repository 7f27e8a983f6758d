"""What a server does beside serving: it answers its operator, removes old sessions, and asks for costs."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from re_bench.errors import UsageError
from re_bench_server.logs import log
from re_bench_server.operator_socket import OperatorSocket
from re_bench_server.records.retention import remove_old
from re_bench_server.records.session_files import ENDED_BY_OPERATOR

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from re_bench_server.registry import SessionRegistry

_COST_PERIOD_S = 15.0
_RETENTION_PERIOD_S = 3600.0


@asynccontextmanager
async def operating(registry: SessionRegistry) -> AsyncIterator[None]:
    """Answer the operator and keep order in the state directory for as long as the block runs."""
    operator = OperatorSocket(registry.app.state_directory.path, partial(_operate, registry))
    await operator.open()
    periodic = asyncio.create_task(_periodic(registry))
    try:
        yield
    finally:
        await operator.close()
        periodic.cancel()
        with suppress(asyncio.CancelledError):
            await periodic


async def _operate(registry: SessionRegistry, message: Mapping[str, Any]) -> dict[str, Any]:
    match message:
        case {"do": "end", "session": str(name)}:
            session = registry.sessions.get(name)
            if session is None:
                raise UsageError(f"{name}: this server has no such open session")
            await session.close(ENDED_BY_OPERATOR)
            log.info("session_ended", session=name, attempts=session.attempts, reason=ENDED_BY_OPERATOR)
            return {"ended": name}
    raise UsageError("the server does not know this request")


async def _periodic(registry: SessionRegistry) -> None:
    last_retention = -_RETENTION_PERIOD_S
    while True:
        try:
            if time.monotonic() - last_retention >= _RETENTION_PERIOD_S:
                last_retention = time.monotonic()
                await _remove_old(registry)
            for session in list(registry.sessions.values()):
                await registry.recorder.refresh_cost(session)
        except Exception as error:  # noqa: BLE001 - one failure, such as a full disk, must not end it
            log.error("periodic_work_failed", reason=repr(error))
        await asyncio.sleep(_COST_PERIOD_S)


async def _remove_old(registry: SessionRegistry) -> None:
    settings, sessions = registry.app.settings, registry.app.state_directory.sessions
    removed = await asyncio.to_thread(
        partial(
            remove_old,
            sessions,
            keep_days=settings.keep_days,
            keep_gib=settings.keep_gib,
            in_use=frozenset(registry.sessions),
        )
    )
    for one in removed:
        log.info("session_removed", session=one.name, ended_days_ago=round(one.days, 2), mib=one.size >> 20)
