"""Tunnels for HTTPS: what the first message of TLS names must be the host that the tunnel was asked for."""

from __future__ import annotations

import asyncio
import ssl
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from re_bench_server.network.hosts import HostError, is_address, normalise_host
from re_bench_server.network.traffic import RefusedError

if TYPE_CHECKING:
    from re_bench_server.network.traffic import Exchange

TLS_PORT = 443
_PIECE = 1 << 16
_HELLO_S = 30.0
_MAX_HELLO = 1 << 16
_IDLE_S = 900.0

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ClientHello:
    """Reads the first message of a TLS client, with OpenSSL."""

    def __init__(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sni_callback = self._on_name
        self.data = bytearray()
        """What has been fed."""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._connection = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._name: str | None = None
        self._complete = False

    def feed(self, data: bytes) -> bool:
        """Read more; tell whether the message is complete, so that there is a name or none.

        Raises:
            RefusedError: if this is no TLS.
        """
        self.data += data
        self._incoming.write(data)
        try:
            self._connection.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            if not self._complete:
                raise RefusedError(403, "a tunnel to port 443 must begin with TLS 1.2 or later") from None
        if len(self.data) > _MAX_HELLO and not self._complete:
            raise RefusedError(403, "the first message of TLS is too long")
        return self._complete

    def check(self, host: str) -> None:
        """Do nothing if the message names ``host``; for an address it may name nothing.

        Raises:
            RefusedError: if it does not.
        """
        if self._name is None and is_address(host):
            return
        with suppress(HostError):
            if self._name is not None and normalise_host(self._name) == host:
                return
        name = self._name or "no host"
        raise RefusedError(403, f"the tunnel was asked for {host}, but the first message of TLS in it names {name}")

    def alert(self) -> bytes:
        """Return the alert that tells the client that its name is refused."""
        return self._outgoing.read()

    def _on_name(self, _connection: object, name: str | None, _context: object) -> int:
        self._name, self._complete = name, True
        return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME


async def tunnel(
    exchange: Exchange,
    first: bytes,
    client: Streams,
    host: Streams,
) -> None:
    """Pass bytes on in both directions until both have ended.

    Args:
        exchange: counts them.
        first: what the client has sent already.
        client: its streams.
        host: those of the host.

    Raises:
        RefusedError: if the client's TLS is for another host, or the session may not have more bytes.
        OSError: if a connection breaks.
    """
    if exchange.port == TLS_PORT:
        first = await _read_hello(exchange.host, first, client)
    exchange.count(up=len(first))
    host[1].write(first)
    relay = _Relay(exchange)
    directions = [
        asyncio.ensure_future(relay.pass_on(client[0], host[1], up=True)),
        asyncio.ensure_future(relay.pass_on(host[0], client[1], up=False)),
    ]
    try:
        await asyncio.gather(*directions)
    finally:
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)


async def _read_hello(name: str, first: bytes, client: Streams) -> bytes:
    hello, reader = ClientHello(), client[0]
    try:
        async with asyncio.timeout(_HELLO_S):
            complete = hello.feed(first)
            while not complete:
                complete = hello.feed(await _read_some(reader))
        hello.check(name)
    except TimeoutError:
        raise RefusedError(403, f"the client sent nothing in {_HELLO_S:g} s") from None
    except RefusedError:
        client[1].write(hello.alert())
        raise
    return bytes(hello.data)


async def _read_some(reader: asyncio.StreamReader) -> bytes:
    data = await reader.read(_PIECE)
    if not data:
        raise RefusedError(403, "the client closed the tunnel before TLS began")
    return data


class _Relay:
    """Both directions of a tunnel, which ends when neither has moved for a while."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange, self._active = exchange, time.monotonic()

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, up: bool) -> None:
        """Pass on what ``reader`` has, and at last its end."""
        while data := await self._read(reader):
            self._exchange.count(**{"up" if up else "down": len(data)})
            writer.write(data)
            await writer.drain()
        with suppress(OSError):
            writer.write_eof()

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        while True:
            try:
                async with asyncio.timeout_at(self._deadline()):
                    data = await reader.read(_PIECE)
            except TimeoutError:
                if time.monotonic() - self._active >= _IDLE_S:
                    raise RefusedError(403, f"nothing was sent for {_IDLE_S:g} s") from None
                continue
            self._active = time.monotonic()
            return data

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + _IDLE_S
