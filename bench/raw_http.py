"""A minimal HTTP/1.1 client on asyncio streams, with which benchmarks measure the server and not the client."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit


class Connection:
    """A connection for one session; it sends one request at a time."""

    def __init__(self, url: str, session_id: str) -> None:
        self._address, self.session_id = urlsplit(url), session_id

    async def open(self) -> Connection:
        """Connect, and return this connection."""
        host, port = self._address.hostname, self._address.port
        self._reader, self._writer = await asyncio.open_connection(host, port, limit=1 << 20)
        return self

    async def request(self, method: str, path: str, content: object = None) -> tuple[int, bytes]:
        """Send a request; return the response's status and body."""
        body = b"" if content is None else json.dumps(content).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._address.netloc}\r\nX-Session-ID: {self.session_id}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        status, *fields = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        headers = dict(field.split(": ", 1) for field in fields if field)
        if headers.get("transfer-encoding") == "chunked":
            return int(status.split()[1]), b"".join([chunk async for chunk in self._chunks()])
        return int(status.split()[1]), await self._reader.readexactly(int(headers["content-length"]))

    async def call(self, command: str) -> str:
        """Call the tool ``bash`` and return its output."""
        status, body = await self.request("POST", "/rebench/call", {"name": "bash", "input": {"command": command}})
        assert status == 200, body  # noqa: PLR2004
        lines = [line.removeprefix("data: ") for line in body.decode().split("\r\n") if line.startswith("data: ")]
        output: dict[str, Any] = json.loads("".join(lines[1:]))  # the first line contains the call's id
        return str(output["output"]["blocks"][0]["text"])

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()

    async def _chunks(self) -> Any:
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readexactly(2)
