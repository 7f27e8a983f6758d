"""The gateway's process; :func:`re_bench.gateway.serving` starts it with the number of an inherited socket."""

from __future__ import annotations

import socket
import sys

from re_bench.errors import UsageError
from re_bench.gateway.control import failure
from re_bench.isolation.frames import send
from re_bench.programs import ending_as

_ARGUMENTS = 2


def main() -> None:
    """Serve over the socket that the only argument is the number of."""
    with ending_as("re-bench gateway"):
        if len(sys.argv) != _ARGUMENTS or not sys.argv[1].isdigit():
            raise UsageError("this is started by re_bench.gateway.serving, not by hand")
        channel = socket.socket(fileno=int(sys.argv[1]))
        try:
            from re_bench.gateway.server import run  # noqa: PLC0415 - what it needs may be missing
        except ImportError as error:
            msg = f"the gateway needs a package that is missing ({error.name}); pip install 're-bench-common[gateway]'"
            send(channel, failure(UsageError(msg)))
            return
        run(channel)


if __name__ == "__main__":
    main()
