"""The gateway's process; :func:`re_bench_gateway.serving` starts it with the number of an inherited socket."""

from __future__ import annotations

import socket
import sys

from re_bench.errors import UsageError
from re_bench.processes import cli_entry_point
from re_bench_gateway.server import run

if __name__ == "__main__":
    with cli_entry_point("re-bench gateway"):
        if len(sys.argv) != 2 or not sys.argv[1].isdigit():  # noqa: PLR2004 - its name and a number
            raise UsageError("this is started by re_bench_gateway.serving, not by hand")
        run(socket.socket(fileno=int(sys.argv[1])))
