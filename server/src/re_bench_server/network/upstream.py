"""Connections to the hosts that the operator allows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from re_bench_server.network.addresses import AddressError, resolve
from re_bench_server.network.hosts import write_authority
from re_bench_server.network.traffic import RefusedError

if TYPE_CHECKING:
    from re_bench_server.network.traffic import Exchange

_CONNECT_S = 20.0


async def connect(exchange: Exchange) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the host of an exchange, if it may be reached; this is logged before anything is sent.

    Raises:
        RefusedError: if it may not, or does not answer.
    """
    traffic, host, port = exchange.traffic, exchange.host, exchange.port
    traffic.check_limits()
    name = write_authority(host, port)
    if not traffic.allow_list.allows(host, port):
        raise RefusedError(403, f"{name} is not on the allow-list of this server's operator")
    try:
        async with traffic.look_ups:
            addresses = await resolve(host)
    except AddressError as error:
        raise RefusedError(403, f"{name} cannot be reached: {error}") from None
    problem = "no address"
    for address in addresses:
        try:
            async with asyncio.timeout(_CONNECT_S):
                streams = await asyncio.open_connection(str(address), port)
        except OSError as error:
            problem = f"{address}: {error.strerror or 'no answer'}"
            continue
        try:
            exchange.log("connected", address=str(address))
        except RefusedError:
            streams[1].close()
            raise
        exchange.connected = True
        streams[1].transport.set_write_buffer_limits(high=0)
        return streams
    raise RefusedError(502, f"{name} does not answer ({problem})")
