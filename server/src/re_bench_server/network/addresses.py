"""Which addresses are public, and the resolution of names to such addresses alone."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from concurrent.futures import ThreadPoolExecutor

from re_bench_server.network.hosts import is_address

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_THREADS = ThreadPoolExecutor(128, thread_name_prefix="resolve")
_RESOLVE_S = 20.0
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_REFUSED = [
    ipaddress.ip_network(text)
    for text in (
        "168.63.129.16/32",  # the metadata service of Azure, in a public range
        "192.0.0.0/24",  # protocol assignments; another provider's metadata service
        "192.88.99.0/24",  # relays of 6to4
        "2001::/23",  # protocol assignments; Teredo, which embeds addresses
        "2002::/16",  # 6to4, which embeds addresses
        "3fff::/20",  # documentation
    )
]
_ISATAP = (0x5EFE, 0x0200_5EFE)
"""The upper half of an interface's number that embeds an IPv4 address."""
_LOW_32 = 0xFFFF_FFFF


class AddressError(Exception):
    """A host has no address, or one that is not public; the message says which."""


def is_public(address: Address) -> bool:
    """Tell whether an address is public by its range; one that embeds another is judged by that or refused."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & _LOW_32))
        if address.scope_id or address not in _GLOBAL_UNICAST or (int(address) >> 32) & _LOW_32 in _ISATAP:
            return False
    refused = any(address in network for network in _REFUSED if network.version == address.version)
    return address.is_global and not address.is_multicast and not address.is_reserved and not refused


def is_local(address: Address) -> bool:
    """Tell whether an address, public or not, is one of this machine's own: only to these can a socket be bound."""
    family = socket.AF_INET if isinstance(address, ipaddress.IPv4Address) else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


async def resolve(host: str) -> list[Address]:
    """Return the addresses of a host, all of them public; whoever connects to one of them needs no second look-up.

    Args:
        host: in the spelling of :func:`re_bench_server.network.hosts.normalise_host`.

    Raises:
        AddressError: if there is none, or any is not public or is this machine's.
    """
    addresses = [ipaddress.ip_address(host)] if is_address(host) else await _look_up(host)
    for address in addresses:
        if not is_public(address):
            raise AddressError(f"{address} is not a public address")
        if is_local(address):
            raise AddressError(f"{address} is an address of the server's own machine")
    return addresses


async def _look_up(host: str) -> list[Address]:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_RESOLVE_S):
            # The last dot keeps the resolver from appending the machine's own domains.
            results = await loop.run_in_executor(
                _THREADS, lambda: socket.getaddrinfo(f"{host}.", None, type=socket.SOCK_STREAM)
            )
    except TimeoutError:
        raise AddressError(f"the name {host} was not resolved within {_RESOLVE_S:g} s") from None
    except (OSError, UnicodeError) as error:
        raise AddressError(f"the name {host} cannot be resolved ({error})") from None
    return list(dict.fromkeys(ipaddress.ip_address(str(result[4][0])) for result in results))
