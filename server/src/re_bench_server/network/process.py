"""The proxy's process, as the server sees it: started in a sandbox of its own, and again if it ends."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import re_bench
import re_bench_server
from re_bench.errors import ReBenchError
from re_bench.guest import ipc
from re_bench.limits import Limits
from re_bench.sandbox.bubblewrap import Bubblewrap
from re_bench.sandbox.process import end_process, start
from re_bench.sandbox.spec import SandboxSpec
from re_bench_server.logs import log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from re_bench.sandbox.spec import Launch

_PROGRAM = (
    "import os, sys; sys.path.insert(0, sys.argv[2]); os.dup2(int(sys.argv[3]), 2); "
    "from re_bench_server.network.program import main; main()"
)
_INSIDE = "/run/proxy"
_RESOLVER = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf")
_REPLY_S = 20.0
_MAX_REPLY = 1 << 10
_FILES = 16384
_DAY_S = 24 * 3600


class ProxyProcess:
    """One process of the proxy program."""

    def __init__(self, error_log: Path) -> None:
        """Start it in bubblewrap; by the event loop's thread, with which it ends.

        Args:
            error_log: where it writes what goes wrong in it.

        Raises:
            ReBenchError: if it cannot be started.
        """
        self._channel, theirs = socket.socketpair()
        errors = os.open(error_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        passed = (theirs.detach(), errors)
        try:
            self._launch = _launch(passed)
            self._process = start(self._launch, stdout=subprocess.DEVNULL)
        except OSError as error:
            self._channel.close()
            raise ReBenchError(f"the network proxy cannot be started: {error}") from None
        self._sending = asyncio.Lock()
        self.pid = self._process.pid

    async def request(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        """Have it do something.

        Raises:
            ReBenchError: if it does not answer; it is killed then, so that no late answer is taken for the next one's.
        """
        await asyncio.shield(self._request_next(message, list(descriptors)))

    async def _request_next(self, message: dict[str, Any], descriptors: list[int]) -> None:
        async with self._sending:
            await asyncio.to_thread(self._request, message, descriptors)

    def _request(self, message: dict[str, Any], descriptors: list[int]) -> None:
        try:
            ipc.send(self._channel, message, descriptors)
            ipc.receive(self._channel, _MAX_REPLY, accept_descriptors=False, deadline=time.monotonic() + _REPLY_S)
        except (OSError, ipc.FrameError) as error:
            end_process(self._process)
            raise ReBenchError(f"the network proxy does not answer ({error})") from None

    def end(self) -> None:
        """End it, and wait until nothing of it is left."""
        self._channel.close()
        end_process(self._process)
        self._launch.cleanup()
        if self._process.stderr is not None:
            with suppress(OSError):
                self._process.stderr.close()


def _launch(passed: tuple[int, int]) -> Launch:
    """Return how to start the program: it sees the system, Python, this package, and nothing else of the machine."""
    packages = [Path(package.__file__ or "").parent for package in (re_bench, re_bench_server)]
    shown = {f"{_INSIDE}/{path.name}": path for path in packages}
    shown |= {name: Path(name).resolve() for name in _RESOLVER if Path(name).exists()}
    open_files = min(_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    if open_files < _FILES:
        message = (
            f"sessions that use all their connections exhaust the proxy's open files; raise `ulimit -Hn` to {_FILES}"
        )
        log.warning("network_proxy_open_files", limit=open_files, message=message)
    backend = Bubblewrap()
    limits = Limits(cpu_s=1000 * _DAY_S, memory_mib=2048, processes=256, file_mib=64, open_files=open_files, tmp_mib=16)
    program = [backend.python, "-I", "-c", _PROGRAM, str(passed[0]), _INSIDE, str(passed[1])]
    launch = backend.launch(program, SandboxSpec(read_only=shown, limits=limits, host_network=True))
    return replace(launch, descriptors=(*launch.descriptors, *passed))
