"""The operator's allow-list of hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from re_bench_server.network.hosts import HostError, is_address, normalise_host, split_port

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_PORTS = frozenset({80, 443})
READY_LISTS = {
    "@packages": (
        *("pypi.org", "files.pythonhosted.org", "download.pytorch.org", "download-r2.pytorch.org"),
        *("conda.anaconda.org", "repo.anaconda.com"),
        *("deb.debian.org", "security.debian.org", "archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com"),
        *("crates.io", "index.crates.io", "static.crates.io", "static.rust-lang.org"),
        *("registry.npmjs.org", "registry.yarnpkg.com"),
        *("proxy.golang.org", "sum.golang.org"),
    )
}
"""Lists by name: the hosts that clients of the usual package indexes ask."""


@dataclass(frozen=True)
class Pattern:
    """Some hosts, and their ports."""

    host: str
    """A host, or the parent of those that match."""
    itself: bool
    """Whether ``host`` matches."""
    below: bool
    """Whether names below ``host`` match, or any host if it is empty."""
    ports: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Return the pattern that the operator wrote.

        ``example.org`` is that host, ``*.example.org`` all names below it, ``.example.org`` both, ``*`` every host.
        ``:PORT`` may follow; without it ports 80 and 443 match.

        Raises:
            HostError: if it is none of these.
        """
        if not text.isascii():  # of "ß" and the like there are two encodings, which different owners may have
            raise HostError(f"{text!r}: write a name that is not ASCII as clients send it, with xn--")
        name, port = split_port(text)
        ports = DEFAULT_PORTS if port is None else frozenset({port})
        if name == "*":
            return cls("", itself=False, below=True, ports=ports)
        wildcard = next((prefix for prefix in ("*.", ".") if name.startswith(prefix)), "")
        host = normalise_host(name.removeprefix(wildcard))
        if wildcard and is_address(host):
            raise HostError(f"{text!r}: nothing is below an address")
        return cls(host, itself=wildcard != "*.", below=bool(wildcard), ports=ports)

    def matches(self, host: str, port: int) -> bool:
        """Tell whether the host, in the spelling of :func:`normalise_host`, and the port match."""
        if port not in self.ports:
            return False
        if not self.host:
            return True
        return (self.itself and host == self.host) or (self.below and host.endswith(f".{self.host}"))


class AllowList:
    """The hosts that sessions may reach, if these are public."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Read patterns and names of ready lists.

        Raises:
            HostError: if one is neither.
        """
        self._patterns = [Pattern.parse(pattern) for text in patterns for pattern in _expand(text)]

    def allows(self, host: str, port: int) -> bool:
        """Tell whether a host, in the spelling of :func:`normalise_host`, may be reached at a port."""
        return any(pattern.matches(host, port) for pattern in self._patterns)


def _expand(text: str) -> Iterable[str]:
    if text.startswith("@") and text not in READY_LISTS:
        raise HostError(f"there is no list {text}; there is {', '.join(READY_LISTS)}")
    return READY_LISTS.get(text, (text,))
