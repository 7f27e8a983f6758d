"""Entry point of the gateway process, which :func:`re_bench_gateway.serving` starts with an inherited socket."""

from __future__ import annotations

import socket
import sys

from re_bench.processes import cli_entry_point
from re_bench_gateway.server import run

if __name__ == "__main__":
    with cli_entry_point("re-bench gateway"):
        run(socket.socket(fileno=int(sys.argv[1])))
