"""Checks of what can be talked to."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from re_bench.sandbox.conformance.attack import Check, attack, fail_if, register, token

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench.sandbox.spec import Backend

CHECKS: dict[str, Check] = {}
check = register(CHECKS)

_FAMILIES = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}


def _call(addresses: list[list[Any]]) -> list[str]:
    """Attack: connect to, and send to, every address (family, kind, address)."""
    got = []
    for family, kind, address in addresses:
        with suppress(OSError), socket.socket(family, kind) as caller:
            caller.settimeout(1)
            caller.connect(tuple(address) if isinstance(address, list) else address)
            caller.send(b"hello")
            got.append(f"{socket.SocketKind(kind).name} to {address!r}")
    return got


def _check_calls(backend: Backend, addresses: list[tuple[int, int, Any]]) -> None:
    """Listen at every address and fail if anything arrives."""
    with ExitStack() as stack:
        listeners = []
        for family, kind, address in addresses:
            with suppress(OSError):  # a machine without IPv6
                listener = stack.enter_context(socket.socket(family, kind))
                listener.bind(address)
                listener.settimeout(0)
                if kind != socket.SOCK_DGRAM:
                    listener.listen()
                listeners.append(listener)
        reachable = [[int(listener.family), int(listener.type), listener.getsockname()] for listener in listeners]
        reachable = [
            [family, kind, address.decode("latin-1") if isinstance(address, bytes) else address]
            for family, kind, address in reachable
        ]
        attack(backend, _call, reachable)
        fail_if([f"something arrived at {listener.getsockname()}" for listener in listeners if _has_arrived(listener)])


def _has_arrived(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_DGRAM:
            listener.recv(1)
        else:
            listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _own_addresses() -> list[str]:
    """Return this machine's addresses apart from the loopback's, as far as they can be told without asking anybody."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect(("192.0.2.1", 9))  # sends nothing: https://www.rfc-editor.org/rfc/rfc5737
        return [probe.getsockname()[0]]
    return []


@check
def local_servers(backend: Backend, scratch: Path) -> None:
    """Servers of this machine cannot be reached by TCP or UDP."""
    del scratch
    hosts = [(socket.AF_INET, host) for host in ("127.0.0.1", *_own_addresses())] + [(socket.AF_INET6, "::1")]
    kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM)
    _check_calls(backend, [(family, kind, (host, 0)) for family, host in hosts for kind in kinds])


@check
def abstract_sockets(backend: Backend, scratch: Path) -> None:
    """Unix sockets without a path cannot be reached."""
    del scratch
    kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET)
    _check_calls(backend, [(socket.AF_UNIX, kind, f"\0{token()}") for kind in kinds])


@check
def sockets_with_a_path(backend: Backend, scratch: Path) -> None:
    """Unix sockets in directories that are not shown cannot be reached."""
    kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM)
    _check_calls(backend, [(socket.AF_UNIX, kind, str(scratch / str(int(kind)))) for kind in kinds])


def _leave(servers: list[str]) -> list[str]:
    """Attack: find a way out of the machine."""
    got = []
    for listed in ("/proc/net/dev", "/proc/self/net/dev", f"/proc/self/task/{os.getpid()}/net/dev"):
        with suppress(OSError), open(listed, encoding="ascii") as file:  # noqa: PTH123
            names = {line.partition(":")[0].strip() for line in file if ":" in line}
            got += [f"interface {name} in {listed}" for name in names - {"lo", "sit0", "tunl0"}]
    with suppress(OSError):
        got += [f"interface {name}" for _index, name in socket.if_nameindex() if name not in {"lo", "sit0", "tunl0"}]
    for host in ("192.0.2.1", "2001:db8::1", *servers):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as caller:
            caller.connect((host, 53))
            got.append(f"a way to {host}")
    return got


@check
def ways_out(backend: Backend, scratch: Path) -> None:
    """There is no interface but the loopback, no route, and no server of names."""
    del scratch
    servers = []
    with suppress(OSError), open("/etc/resolv.conf", encoding="utf-8") as file:  # noqa: PTH123
        servers = [words[1] for words in map(str.split, file) if words[:1] == ["nameserver"] and len(words) > 1]
    outside = [server for server in servers if not server.startswith("127.") and server != "::1"]
    fail_if(attack(backend, _leave, outside))


def _open_sockets() -> list[int]:
    """Attack: open sockets of every family."""
    got = set()
    for family in range(64):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            with suppress(OSError):
                os.close(socket.socket(family, kind).detach())
                got.add(family)
    return sorted(got)


@check
def kinds_of_sockets(backend: Backend, scratch: Path) -> None:
    """Only sockets that the network's walls hold can be opened: not the ones to a virtual machine's host, say."""
    del scratch
    names = {int(value): name for name, value in vars(socket).items() if name.startswith("AF_")}
    others = set(attack(backend, _open_sockets)) - set(map(int, _FAMILIES))
    fail_if([f"sockets of the family {names.get(family, family)} can be opened" for family in sorted(others)])
