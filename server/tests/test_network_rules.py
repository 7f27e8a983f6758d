"""Which hosts a pattern names, which addresses are public, and what of TLS is read."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
from typing import TYPE_CHECKING

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from re_bench.errors import UsageError
from re_bench.sandbox import bubblewrap
from re_bench_server.network.addresses import is_public
from re_bench_server.network.allow_list import READY_LISTS, AllowList
from re_bench_server.network.hosts import HostError, is_address, normalise_host, split_authority, write_authority
from re_bench_server.network.policy import NetworkPolicy
from re_bench_server.network.requests import Peer, serve
from re_bench_server.network.traffic import RefusedError, Traffic
from re_bench_server.network.tunnel import ClientHello

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("example.org", "example.org:443 example.org:80", "a.example.org:443 example.org:22 xexample.org:443"),
        ("*.example.org", "a.example.org:443 a.b.example.org:80", "example.org:443 xexample.org:443"),
        (".Example.ORG.", "example.org:443 a.example.org:443", "xexample.org:443 example.org.net:443"),
        ("example.org:8443", "example.org:8443", "example.org:443"),
        ("*", "example.org:443 8.8.8.8:80", "example.org:22"),
        ("*:22", "example.org:22", "example.org:443"),
        ("[2606:4700:0::1111]", "[2606:4700::1111]:443", "[2606:4700::1112]:443"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example:443", "bucher.example:443"),
        ("@packages", "pypi.org:443 deb.debian.org:80", "huggingface.co:443 github.com:443 evil.pypi.org:443"),
    ],
)
def test_patterns(pattern: str, matching: str, others: str) -> None:
    allow_list = AllowList([pattern])
    for authority in matching.split():
        assert allow_list.allows(*split_authority(authority)), authority
    for authority in others.split():
        assert not allow_list.allows(*split_authority(authority)), authority


def test_ready_lists_hold_plain_names() -> None:
    for names in READY_LISTS.values():
        assert [normalise_host(name) for name in names] == list(names)


NOT_PUBLIC = """
    0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 127.0.0.1 127.255.0.1 168.63.129.16 169.254.169.254
    172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.51.100.1 203.0.113.1
    224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255
    :: ::1 ::8.8.8.8 ::ffff:8.8.8.8 ::ffff:10.0.0.1 64:ff9b::a00:1 64:ff9b::7f00:1 64:ff9b:1::1 100::1 fc00::1
    fd00:ec2::254 fe80::1 fec0::1 ff02::1 2001::1 2001:db8::1 2002:a00:1:: 2002:808:808:: 3fff::1 5f00::1
    2606::5efe:10.0.0.1 2606::200:5efe:10.0.0.1 4000::1
"""
PUBLIC = "1.1.1.1 8.8.8.8 151.101.0.223 2606:4700::1111 2a04:4e42::223 64:ff9b::808:808"


def test_which_addresses_are_public() -> None:
    assert [text for text in NOT_PUBLIC.split() if is_public(ipaddress.ip_address(text))] == []
    assert [text for text in PUBLIC.split() if not is_public(ipaddress.ip_address(text))] == []


@given(
    st.text(st.characters(codec="utf-8"), max_size=40) | st.from_regex(r"[0-9a-fx.:%\\[\\]@-]{1,30}", fullmatch=True)
)
def test_a_host_has_one_spelling_or_none(text: str) -> None:
    try:
        host = normalise_host(text)
    except HostError:
        return
    assert normalise_host(write_authority(host)) == host
    assert host.isascii()
    assert not set(host) & set("@/%?#[] \\")
    assert is_address(host) or "." in host


def hello(name: str | None) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    connection = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_the_first_message_of_tls_in_pieces(size: int) -> None:
    reader, data = ClientHello(), hello("Allowed.example.org")
    complete = [reader.feed(data[start : start + size]) for start in range(0, len(data), size)]
    assert complete[-1]
    assert not any(complete[:-1])
    reader.check("allowed.example.org")
    with pytest.raises(RefusedError, match="names Allowed"):
        reader.check("other.example.org")


@pytest.mark.parametrize(("host", "right"), [("8.8.8.8", True), ("allowed.example.org", False)])
def test_tls_without_a_name_is_for_addresses(host: str, right: bool) -> None:
    reader = ClientHello()
    assert reader.feed(hello(None))
    if right:
        reader.check(host)
    else:
        with pytest.raises(RefusedError, match="no host"):
            reader.check(host)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a name that is not ASCII
@given(st.integers(0, 400), st.binary(min_size=1, max_size=20))
def test_a_damaged_first_message_is_refused_or_read(position: int, damage: bytes) -> None:
    data = bytearray(hello("allowed.example.org"))
    data[position : position + len(damage)] = damage
    reader = ClientHello()
    try:
        if reader.feed(bytes(data)):
            reader.check("other.example.org")
    except RefusedError:
        return
    assert not reader.feed(b"")


def test_nothing_happens_without_a_record(tmp_path: Path) -> None:
    path = tmp_path / "network.jsonl"
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    traffic = Traffic(AllowList(["*"]), limit_mib=1, used_bytes=0, log=log)
    traffic.check_limits()
    os.truncate(path, 16 << 20)
    with pytest.raises(RefusedError, match="is full"):
        traffic.check_limits()
    for entry in ("refused", "connected", "ended"):
        with pytest.raises(RefusedError, match="is full"):
            traffic.begin("GET", "example.org", 80, "/").log(entry)
    assert path.stat().st_size == 16 << 20
    traffic.close()
    other = os.open(tmp_path / "other", os.O_WRONLY | os.O_CREAT)
    assert other == log
    with pytest.raises(RefusedError, match="is closed"):
        traffic.begin("GET", "example.org", 80, "/").log("ended")
    with pytest.raises(RefusedError, match="has ended"):
        traffic.check_limits()
    os.close(other)
    read_only = os.open(path, os.O_RDONLY)
    os.truncate(path, 0)
    unwritable = Traffic(AllowList(["*"]), limit_mib=1, used_bytes=0, log=read_only)
    with pytest.raises(RefusedError, match="cannot be written"):
        unwritable.begin("GET", "example.org", 80, "/").log("connected")
    os.close(read_only)


def test_buffered_chunks_leave_other_sessions_their_turn() -> None:
    chunks = 500

    async def receive() -> int:
        ours, theirs = socket.socketpair()
        theirs.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * chunks)
        theirs.sendall(b"0\r\n\r\n")
        turns = 0

        async def take_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(take_turns())
        streams = await asyncio.open_connection(sock=ours)
        client = Peer(h11.SERVER, streams)
        while not isinstance((await client.receive(5))[0], h11.EndOfMessage):
            pass
        other.cancel()
        streams[1].transport.abort()
        theirs.close()
        return turns

    assert asyncio.run(receive()) >= chunks


def test_a_connection_counts_until_it_is_closed(tmp_path: Path) -> None:
    async def refuse() -> None:
        ours, theirs = socket.socketpair()
        log = os.open(tmp_path / "network.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        traffic = Traffic(AllowList(["example.org"]), limit_mib=1, used_bytes=0, log=log)
        serving = asyncio.create_task(serve(traffic, *await asyncio.open_connection(sock=ours)))
        reader, writer = await asyncio.open_connection(sock=theirs)
        writer.write(b"GET http://example.net/ HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"allow-list" in await reader.read()
        assert traffic.open == 1  # it waits for the client to close too
        writer.close()
        await serving
        assert (traffic.open, traffic.connections) == (0, 0)
        traffic.close()

    asyncio.run(refuse())


def test_the_proxy_itself_needs_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bubblewrap, "_probe", bubblewrap._probe.__wrapped__)  # it remembers what it has found
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="needs bubblewrap for the proxy itself"):
        NetworkPolicy("proxy", ("*",)).check_sandbox("container")
    NetworkPolicy("open").check_sandbox("container")
