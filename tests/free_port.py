"""A port for a server that is started later, or started again."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """Return a free port of loopback that no connection takes meanwhile: those take ports of a range of their own."""
    first, last = map(int, _RANGE.read_text().split())
    while True:
        port = random.choice([port for port in range(10_000, 1 << 16) if not first <= port <= last])
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
