"""The gateway's process; :func:`re_bench_gateway.serving` starts it with the number of an inherited socket."""

from __future__ import annotations

import socket
import sys

from re_bench.errors import UsageError
from re_bench.guest.ipc import send
from re_bench.processes import cli_entry_point
from re_bench_gateway.control import failure

_ARGUMENTS = 2


def main() -> None:
    """Serve over the socket that the only argument is the number of."""
    with cli_entry_point("re-bench gateway"):
        if len(sys.argv) != _ARGUMENTS or not sys.argv[1].isdigit():
            raise UsageError("this is started by re_bench_gateway.serving, not by hand")
        channel = socket.socket(fileno=int(sys.argv[1]))
        try:
            from re_bench_gateway.server import run  # noqa: PLC0415 - what it needs may be missing
        except ImportError as error:
            reason = f"the gateway needs a package that is missing ({error.name}); run: pip install re-bench-server"
            send(channel, failure(UsageError(reason)))
            return
        run(channel)


if __name__ == "__main__":
    main()
