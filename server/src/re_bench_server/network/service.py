"""The network of a server's sessions: what each sandbox is shown and told, and the proxy behind it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.data.jsonl import read_lines
from re_bench.errors import ReBenchError
from re_bench.guest import port_forward
from re_bench.sandbox.bubblewrap import Bubblewrap
from re_bench_server.logs import log
from re_bench_server.network.process import ProxyProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    from re_bench.sandbox.spec import Backend
    from re_bench_server.network.policy import NetworkPolicy

LOG = "network.jsonl"
"""The name of the log in a session's directory."""
_PORT = 18081
_RESTART_S = 0.5
_GUEST = "/run/re-bench"
_CERTIFICATES = (
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
)
_RESOLVER = ("/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/gai.conf")


@dataclass
class NetworkAccess:
    """What a session's sandbox gets."""

    variables: dict[str, str] = field(default_factory=dict)
    """Environment variables."""
    shown: dict[str, Path] = field(default_factory=dict)
    """Files and sockets by their path inside."""
    services: list[list[str]] = field(default_factory=list)
    """Programs that run beside the shell."""


class Network:
    """The networks of all sessions of a server. The proxy is started by the first session that needs it."""

    def __init__(self, policy: NetworkPolicy, backend: Backend, state: Path, sockets: Path) -> None:
        """Prepare.

        Args:
            policy: the operator's choice.
            backend: of the sessions' sandboxes.
            state: where the proxy writes what goes wrong in it.
            sockets: a directory for the sessions' sockets.
        """
        self.policy = policy
        self._backend, self._log, self._sockets = backend, state / "proxy.log", sockets
        self._sessions: dict[str, _Listening] = {}
        self._process: ProxyProcess | None = None
        self._telling = asyncio.Lock()
        self._restarting: asyncio.Task[None] | None = None

    async def open(self, name: str, directory: Path) -> NetworkAccess:
        """Open a session's network.

        Args:
            name: the session's.
            directory: the session's, where the log of its connections is kept. Bytes in it count as used.

        Raises:
            ReBenchError: if that fails.
        """
        if self.policy.mode == "none":
            return NetworkAccess()
        shown = _shown(_CERTIFICATES) if isinstance(self._backend, Bubblewrap) else {}
        if self.policy.mode == "open":
            return NetworkAccess(shown=shown | (_shown(_RESOLVER) if isinstance(self._backend, Bubblewrap) else {}))
        session = _Listening(self._sockets / f"{name}.proxy", directory / LOG)
        self._sessions[name] = session
        try:
            await self._tell_proxy()
        except BaseException:
            await self.close_session(name)
            raise
        forwarder, inside = f"{_GUEST}/port_forward.py", f"{_GUEST}/proxy.sock"
        address = f"http://127.0.0.1:{_PORT}"
        variables = {
            **{spelling: address for kind in ("http", "https", "all") for spelling in _spellings(f"{kind}_proxy")},
            **dict.fromkeys(_spellings("no_proxy"), "127.0.0.1,localhost,::1"),
        }
        return NetworkAccess(
            variables,
            {**shown, inside: session.path, forwarder: Path(port_forward.__file__)},
            [[self._backend.python, "-I", "-S", forwarder, str(_PORT), inside]],
        )

    async def close_session(self, name: str) -> None:
        """End a session's connections; then all of them are in its log."""
        session = self._sessions.pop(name, None)
        if session is None:
            return
        try:
            if self._process is not None:
                with suppress(ReBenchError):  # it has ended, and with it the connections
                    await self._process.request({"close": name})
        finally:
            session.close()

    async def close(self) -> None:
        """End the proxy; all sessions are closed."""
        process, self._process = self._process, None
        if self._restarting is not None:
            self._restarting.cancel()
            await asyncio.gather(self._restarting, return_exceptions=True)
        if process is not None:
            await asyncio.to_thread(process.end)

    async def _tell_proxy(self) -> None:
        """Tell the proxy of all sessions that it does not know; start it first unless it runs."""
        async with self._telling:
            process = self._process or self._start()
            for name, session in list(self._sessions.items()):
                if session.told == process.pid:
                    continue
                used_bytes = await asyncio.to_thread(_used_bytes, session.log_path)
                if self._sessions.get(name) is session:  # it may have been closed meanwhile
                    await process.request(*session.request(name, self.policy, used_bytes))
                    session.told = process.pid

    def _start(self) -> ProxyProcess:
        self._process = process = ProxyProcess(self._log)
        _when_ended(process.pid, self._on_end)
        log.info("network_proxy_started", pid=process.pid, **self.policy.record())
        return process

    def _on_end(self) -> None:
        """Start the proxy again if nobody has ended it."""
        if self._process is not None:
            if self._restarting is not None:
                self._restarting.cancel()  # it was telling the one that has ended
            self._restarting = asyncio.ensure_future(self._restart(self._process))
            self._process = None

    async def _restart(self, ended: ProxyProcess) -> None:
        log.error("network_proxy_ended", log=str(self._log))
        await asyncio.to_thread(ended.end)
        while True:
            await asyncio.sleep(_RESTART_S)
            try:
                return await self._tell_proxy()
            except ReBenchError as error:
                log.error("network_proxy_not_started", reason=str(error))


class _Listening:
    """A session's socket, which outlives the proxy's process because sandboxes show the file, and its log."""

    def __init__(self, path: Path, log_path: Path) -> None:
        self.told = 0
        """The process that knows of it."""
        path.unlink(missing_ok=True)
        self.path, self.log_path = path, log_path
        self._log = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        path.chmod(0o666)  # the sandbox is another user, and sees what it is shown
        self._listener.listen(512)

    def request(self, name: str, policy: NetworkPolicy, used_bytes: int) -> tuple[dict[str, Any], list[int]]:
        """Return what the proxy is told of the session, with file descriptors."""
        message = {"open": name, "allow": list(policy.allow), "limit_mib": policy.limit_mib}
        return message | {"used_bytes": used_bytes}, [self._listener.fileno(), self._log]

    def close(self) -> None:
        """Close both, and remove the socket."""
        self._listener.close()
        os.close(self._log)
        self.path.unlink(missing_ok=True)


def _used_bytes(path: Path) -> int:
    """Return how many bytes a session has sent and received, by its log; torn lines do not count."""
    total = 0
    for line in read_lines(path):
        with suppress(ValueError):
            record = json.loads(line)
            total += record.get("up", 0) + record.get("down", 0)
    return total


def _when_ended(pid: int, callback: Callable[[], None]) -> None:
    """Call back when a process has ended."""
    loop = asyncio.get_running_loop()
    handle = os.pidfd_open(pid)

    def ended() -> None:
        loop.remove_reader(handle)
        os.close(handle)
        callback()

    loop.add_reader(handle, ended)


def _shown(paths: tuple[str, ...]) -> dict[str, Path]:
    return {path: Path(path).resolve() for path in paths if Path(path).exists()}


def _spellings(name: str) -> tuple[str, str]:
    return name, name.upper()
