"""What comes out of a sandbox may be made up: it is read as what it can be, or ends the sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from re_bench.guest import ipc
from re_bench_server.shell.protocol import Reply
from re_bench_server.shell.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LONGEST = 1 << 20


def frame(message: Any, descriptors: int = 0) -> bytes:
    text = json.dumps(message).encode()
    return ipc.HEADER.pack(len(text), descriptors) + text


def started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"], stderr=subprocess.PIPE, start_new_session=True)


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[tuple[Sandbox, socket.socket]]:
    """Give what the server has of a sandbox, and the other end of its connection."""
    process = started()
    sandbox = Sandbox(process, lambda: None, LONGEST)
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.settimeout(0)
        await asyncio.get_running_loop().create_connection(lambda: sandbox, sock=ours)
        try:
            yield sandbox, theirs
        finally:
            await sandbox.end("")
    assert process.poll() is not None


async def send(theirs: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):
        await asyncio.get_running_loop().sock_sendall(theirs, data)


def test_answers_come_whole_however_they_are_cut() -> None:
    async def answers() -> list[dict[str, Any] | None]:
        async with connected() as (sandbox, theirs):
            results = []
            for message in ({"a": "é"}, {"b": 2}):
                waiting = asyncio.ensure_future(sandbox.reply(5))
                for byte in frame(message):
                    await send(theirs, bytes([byte]))
                    await asyncio.sleep(0)
                results.append(await waiting)
            theirs.close()
            return [*results, await sandbox.reply(5)]

    assert asyncio.run(answers()) == [{"a": "é"}, {"b": 2}, None]


@pytest.mark.parametrize(
    "sent",
    [
        ipc.HEADER.pack(LONGEST + 1, 0),
        frame({"a": 1}, descriptors=1),
        ipc.HEADER.pack(3, 0) + b"\xff\xff\xff",
        frame([1, 2]),
        ipc.HEADER.pack(200_000, 0) + b"[" * 200_000,
    ],
    ids=["too long", "descriptors", "no text", "no object", "nested"],
)
def test_nonsense_ends_the_sandbox(sent: bytes) -> None:
    async def asked() -> tuple[dict[str, Any] | None, str]:
        async with connected() as (sandbox, theirs):
            waiting = asyncio.ensure_future(sandbox.reply(5))
            await asyncio.sleep(0)
            await send(theirs, sent)
            return await waiting, sandbox.end_reason

    assert asyncio.run(asked()) == (None, "it broke the protocol")


def test_what_nobody_asked_for_is_not_kept_without_end() -> None:
    async def flooded() -> tuple[str, bool]:
        async with connected() as (sandbox, theirs):
            async with asyncio.timeout(20):
                await send(theirs, bytes(4 * LONGEST))
            return sandbox.end_reason, sandbox.alive

    assert asyncio.run(flooded()) == ("it broke the protocol", False)


@pytest.mark.parametrize("value", [None, True, 1e300, -1, 256, "x", [], {}, [[1]], {"a": 1}, "\ud800", "relative"])
def test_a_reply_is_read_as_what_it_can_be(value: object) -> None:
    names = ("text", "background_text", "file", "status", "timed_out", "notes", "directory")
    reply = Reply.parse(dict.fromkeys(names, value))
    json.dumps([reply.text, reply.background_text, reply.notes, reply.directory]).encode()
    reply.text.encode()
    assert reply.status is None
    assert reply.file is None
    assert reply.directory == ""
    assert reply.timed_out is (value is True)
    assert all(isinstance(note, str) for note in reply.notes)


def test_a_reply_is_bounded() -> None:
    reply = Reply.parse({"notes": ["x" * 5000] * 100, "directory": "/" * 5000, "file": "/a\0b", "text": "a\0b"})
    assert len(reply.notes) == 20
    assert max(map(len, reply.notes)) == 1000
    assert reply.directory == ""
    assert reply.text == "a\ufffdb"
    assert reply.file == Path("/a\ufffdb")
