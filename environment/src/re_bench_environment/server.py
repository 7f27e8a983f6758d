"""The server: the SDK's application behind our front, in one process, until a signal ends it."""

from __future__ import annotations

import asyncio
import os
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING

from re_bench.errors import UsageError
from re_bench.processes import request_stop

os.environ.setdefault("OPENREWARD_DISABLE_UPDATE_CHECK", "1")  # a server asks no package index

import uvicorn
from openreward.environments import Server

from re_bench_environment import logs
from re_bench_environment.creating import Creating
from re_bench_environment.data import use_mounted
from re_bench_environment.environment import environment_of
from re_bench_environment.front import Front
from re_bench_environment.health import health
from re_bench_environment.service import Service

if TYPE_CHECKING:
    from re_bench_environment.settings import Settings

__all__ = ["serve"]

_KEEP_ALIVE_S = 60
_GRACE_S = 5
_BACKLOG = 2048


class _Server(uvicorn.Server):
    """Ends sessions by way of the SDK, without waiting for what is being prepared for them."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        with request_stop():
            await super().shutdown(sockets)


def serve(settings: Settings, *, insecure: bool = False) -> None:
    """Serve until SIGTERM or an interrupt; then end all sessions in order.

    Args:
        settings: what to serve, and where.
        insecure: whether to listen on an address that others can reach without asking for a token.

    Raises:
        UsageError: if it cannot be served here like that.
    """
    _check_address(settings, insecure=insecure)
    logs.set_up(*([settings.token] if settings.token else []))
    for place in use_mounted(os.environ):
        logs.log.info("data_mounted", place=str(place))
    listener = _listener(settings)
    with listener:
        asyncio.run(_serve(settings, listener))


async def _serve(settings: Settings, listener: socket.socket) -> None:
    service = Service(settings)
    for name in service.state.swept:
        logs.log.warning("leftovers_removed", session=name)
    for task, why in service.offers.refused.items():
        logs.log.warning("task_not_served", task=task, why=why)
    # Texts of unknown exceptions stay here; ours reach clients by way of HTTPException.
    application = Server([environment_of(service)], return_errors="none").app
    front = Front(
        Creating(application), token=settings.token, body_bytes=settings.body_bytes, health=lambda: health(service)
    )
    server = _Server(
        uvicorn.Config(
            front,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )
    host, port = listener.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    logs.log.info("serving", address=address, tasks=list(service.offers.by_id), sessions=str(service.state.sessions))
    try:
        await server.serve([listener])
    finally:
        await service.close()
        logs.log.info("ended")


def _check_address(settings: Settings, *, insecure: bool) -> None:
    if settings.token is None and not insecure and not _is_loopback(settings.host):
        raise UsageError(
            f"{settings.host} can be reached by others, who could run programs in the sandboxes here: "
            "give a token with --token-file FILE, or type --insecure"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _listener(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Said to be TCP, or asyncio would leave Nagle's algorithm on, which costs each call 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        listener.close()
        why = getattr(error, "strerror", None) or error
        raise UsageError(
            f"cannot listen on {settings.host}, port {settings.port}: {why}; try another --host or --port"
        ) from None
    return listener
