"""The HTTP side of the proxy: plain requests are read and written anew by h11, so that nothing rides along with one."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11

from re_bench_server.network.hosts import HostError, split_authority, write_authority
from re_bench_server.network.traffic import MAX_CONNECTIONS, RefusedError
from re_bench_server.network.tunnel import TLS_PORT, Streams, tunnel
from re_bench_server.network.upstream import connect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from re_bench_server.network.traffic import Exchange, Traffic

_PIECE = 1 << 16
_MAX_HEAD = 1 << 16
_HEAD_S = 60.0
_BODY_S = 900.0
_LINGER_S = 2.0
_HTTP_PORT = 80
_ABSOLUTE = re.compile(r"http://([^/?#]+)([^#]*)(?:#.*)?", re.IGNORECASE)
_PER_HOP = frozenset(
    b"connection host keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
"""Headers that are for one connection alone; and the host, which the request's target names."""


class Peer:
    """One end of a connection that speaks HTTP/1.1."""

    def __init__(self, role: type[h11.CLIENT | h11.SERVER], streams: Streams) -> None:
        self.http = h11.Connection(role, max_incomplete_event_size=_MAX_HEAD)
        self.reader, self.writer = self.streams = streams

    async def receive(self, within_s: float) -> tuple[object, int]:
        """Return h11's next event, and how many bytes were read for it.

        Raises:
            h11.RemoteProtocolError: if the other side breaks the protocol.
            OSError: if it sends nothing for that long, or the connection breaks.
        """
        await asyncio.sleep(0)  # what is buffered needs no waiting, and other sessions want their turn
        size = 0
        while (event := self.http.next_event()) is h11.NEED_DATA:
            async with asyncio.timeout(within_s):
                data = await self.reader.read(_PIECE)
            size += len(data)
            self.http.receive_data(data)
        return event, size

    async def send(self, event: h11.Event) -> int:
        """Send an event; return how many bytes it took.

        Raises:
            OSError: if the connection breaks.
        """
        data = self.http.send(event) or b""
        self.writer.write(data)
        await self.writer.drain()
        return len(data)


@dataclass(frozen=True)
class _Target:
    host: str
    port: int
    path: str


async def serve(traffic: Traffic, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one connection of a session's client until it ends."""
    if traffic.closed or traffic.open >= 2 * MAX_CONNECTIONS:  # those beyond the half are told why they are refused
        writer.transport.abort()
        return
    writer.transport.set_write_buffer_limits(high=0)  # so that what was sent is not lost when it is closed
    client = Peer(h11.SERVER, (reader, writer))
    traffic.connections += 1
    traffic.open += 1
    try:
        while await _serve_request(traffic, client):
            client.http.start_next_cycle()
    except (OSError, h11.ProtocolError, RefusedError):
        pass  # the client has gone, or the end could not be logged
    finally:
        traffic.connections -= 1
        try:
            await _close(reader, writer)
        finally:
            traffic.open -= 1


async def _close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close a connection so that the other side can still read what was sent: first let it finish, for a moment."""
    try:
        async with asyncio.timeout(_LINGER_S):
            writer.write_eof()
            while await reader.read(_PIECE):
                pass
    except OSError:
        pass
    finally:
        writer.transport.abort()


async def _serve_request(traffic: Traffic, client: Peer) -> bool:
    """Serve one request; tell whether another may follow."""
    try:
        request, _size = await client.receive(_HEAD_S)
    except h11.RemoteProtocolError as error:
        await _refuse(client, RefusedError(400, f"this is no request that can be passed on: {error}"))
        return False
    if not isinstance(request, h11.Request):
        return False
    method, text = request.method.decode("ascii"), request.target.decode("ascii")
    exchange = traffic.begin(method, text.partition("?")[0], 0)
    outcome = "the connection broke"
    try:
        target = _target(method, text)
        exchange.host, exchange.port = target.host, target.port
        if method == "CONNECT":
            outcome = await _serve_tunnel(exchange, client)
        else:
            exchange.path = target.path.partition("?")[0]
            outcome = await _forward(exchange, client, request, target)
    except RefusedError as refused:
        outcome = str(refused)
        await _refuse(client, refused)
    finally:
        exchange.end(outcome)
    return client.http.our_state is h11.DONE and client.http.their_state is h11.DONE


def _target(method: str, text: str) -> _Target:
    """Return what a request is for.

    Raises:
        RefusedError: if it is for no host.
    """
    try:
        if method == "CONNECT":
            host, port = split_authority(text)
            if port == _HTTP_PORT:
                raise RefusedError(
                    403, f"a tunnel is for TLS; ask the proxy for http://{write_authority(host)}/ itself"
                )
            return _Target(host, port, "")
        match = _ABSOLUTE.fullmatch(text)
        if match is None:
            raise RefusedError(
                400, "this is a proxy; ask it for http://HOST/PATH, or for a tunnel with CONNECT HOST:PORT"
            )
        host, port = split_authority(match[1], _HTTP_PORT)
        return _Target(host, port, match[2] if match[2].startswith("/") else f"/{match[2]}")
    except HostError as error:
        raise RefusedError(403, str(error)) from None


async def _serve_tunnel(exchange: Exchange, client: Peer) -> str:
    host = await connect(exchange)
    try:
        await client.send(h11.Response(status_code=200, reason=b"Connection established", headers=[]))
        await tunnel(exchange, client.http.trailing_data[0], client.streams, host)
    finally:
        host[1].transport.abort()
    return "closed"


async def _forward(exchange: Exchange, client: Peer, request: h11.Request, target: _Target) -> str:
    """Pass a request on, and its response back; return the response's status."""
    if target.port == TLS_PORT:
        raise RefusedError(403, "plain HTTP is not for port 443; use https")
    head = _request_head(request, target)
    host = Peer(h11.CLIENT, await connect(exchange))
    try:
        exchange.count(up=await host.send(head))
        sending = asyncio.ensure_future(_send_body(exchange, client, host))
        returning = asyncio.ensure_future(_return_response(exchange, client, host))
        try:
            await asyncio.wait({sending, returning}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
            return str(await returning)
        finally:
            sending.cancel()
            returning.cancel()
            await asyncio.gather(sending, returning, return_exceptions=True)
    except (OSError, h11.RemoteProtocolError) as error:
        raise RefusedError(502, f"{exchange.host} or the client broke the connection ({error})") from None
    finally:
        host.writer.transport.abort()


def _request_head(request: h11.Request, target: _Target) -> h11.Request:
    """Return the request as the host gets it.

    Raises:
        RefusedError: if its body has two lengths.
    """
    headers = _end_to_end(request.headers)
    names = {name for name, _value in request.headers}
    if b"transfer-encoding" in names:
        if b"content-length" in names:
            raise RefusedError(400, "a request has either a Content-Length or a Transfer-Encoding")
        headers.append((b"transfer-encoding", b"chunked"))
    port = None if target.port == _HTTP_PORT else target.port
    headers = [(b"host", write_authority(target.host, port).encode()), *headers, (b"connection", b"close")]
    return h11.Request(method=request.method, target=target.path, headers=headers)


def _end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    headers = list(headers)
    named = {part.strip().lower() for name, value in headers if name == b"connection" for part in value.split(b",")}
    return [(name, value) for name, value in headers if name not in _PER_HOP | (named - {b"content-length"})]


async def _send_body(exchange: Exchange, client: Peer, host: Peer) -> None:
    while True:
        event, _size = await client.receive(_BODY_S)
        if isinstance(event, h11.EndOfMessage):
            await host.send(h11.EndOfMessage())
            return
        if not isinstance(event, h11.Data):
            raise ConnectionResetError("the client has gone")
        with suppress(OSError):  # a host may answer before it has read everything
            exchange.count(up=await host.send(h11.Data(data=event.data)))


async def _return_response(exchange: Exchange, client: Peer, host: Peer) -> int:
    status = 0
    while True:
        event, size = await host.receive(_BODY_S)
        exchange.count(down=size)
        if isinstance(event, h11.InformationalResponse):
            await client.send(event)
        elif isinstance(event, h11.Response):
            status = event.status_code
            await client.send(h11.Response(status_code=status, reason=event.reason, headers=_end_to_end(event.headers)))
        elif isinstance(event, h11.Data):
            await client.send(h11.Data(data=event.data))
        elif isinstance(event, h11.EndOfMessage):
            await client.send(h11.EndOfMessage())
            return status
        else:
            raise ConnectionResetError("the host has gone")


async def _refuse(client: Peer, refused: RefusedError) -> None:
    """Tell the client why, if nothing else has been told; the connection is closed then."""
    if client.http.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
        return
    body = f"re-bench: {refused}\n".encode()
    headers = [
        ("content-type", "text/plain; charset=utf-8"),
        ("content-length", str(len(body))),
        ("connection", "close"),
    ]
    reason = {403: b"Refused by the operator's network rules", 429: b"Too many connections"}.get(refused.status, b"")
    with suppress(OSError):
        await client.send(h11.Response(status_code=refused.status, reason=reason, headers=headers))
        await client.send(h11.Data(data=body))
        await client.send(h11.EndOfMessage())
