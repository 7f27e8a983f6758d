"""Names and ports of hosts: one spelling for each, and everything with a second reading refused."""

from __future__ import annotations

import ipaddress
import re

_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?", re.ASCII)
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_MAX_NAME = 253
_MAX_PORT = 65535
_SPECIAL = (
    "alt",
    "arpa",
    "home",
    "corp",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
)
"""Last labels that never name a public host; ``metadata.google.internal`` is one of these names."""


class HostError(ValueError):
    """The text names no public host; the message says why."""


def split_authority(text: str, default_port: int | None = None) -> tuple[str, int]:
    """Return the host, in its one spelling, and the port of ``HOST[:PORT]``.

    Args:
        text: without a user name; an IPv6 address stands in brackets.
        default_port: if none is given; None if one must be.

    Raises:
        HostError: if it is anything else.
    """
    host, port = split_port(text)
    if port is None and default_port is None:
        raise HostError(f"{text!r} has no port")
    return normalise_host(host), port or default_port or 0


def split_port(text: str) -> tuple[str, int | None]:
    """Return what stands before the port of ``HOST[:PORT]``, and the port, or None without one.

    Raises:
        HostError: if it is not of this form.
    """
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        raise HostError(f"{text!r} is not HOST or HOST:PORT")
    port = int(match[2]) if match[2] else None
    if port is not None and not 0 < port <= _MAX_PORT:
        raise HostError(f"{text!r} has no port from 1 to {_MAX_PORT}")
    return match[1], port


def normalise_host(text: str) -> str:
    """Return the one spelling of a host: lower case, without a last dot; of an address the usual one, without brackets.

    Decimal, octal and hexadecimal spellings of addresses, percent-encoding, zones and non-ASCII names are refused.

    Raises:
        HostError: if it is neither a name with a dot in it that could be public, nor an address.
    """
    if text.startswith("[") and text.endswith("]"):
        return _address(text[1:-1], ipaddress.IPv6Address)
    name = text.lower().removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _address(name, ipaddress.IPv4Address)
    if len(name) > _MAX_NAME or not all(map(_LABEL.fullmatch, labels)):
        raise HostError(f"{text!r} is not the name of a host")
    if len(labels) == 1 or labels[-1] in _SPECIAL:
        raise HostError(f"{text!r} is not the name of a public host")
    return name


def is_address(host: str) -> bool:
    """Tell whether what :func:`normalise_host` returned is an address."""
    return ":" in host or host.rpartition(".")[2].isdigit()


def write_authority(host: str, port: int | None = None) -> str:
    """Return ``HOST[:PORT]``."""
    written = f"[{host}]" if ":" in host else host
    return written if port is None else f"{written}:{port}"


def _address(text: str, kind: type[ipaddress.IPv4Address | ipaddress.IPv6Address]) -> str:
    try:
        if "%" in text:
            raise HostError(f"{text!r} has a zone")
        return str(kind(text))
    except ipaddress.AddressValueError:
        raise HostError(f"{text!r} is not an address in its usual spelling") from None
