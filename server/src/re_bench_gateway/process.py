"""Starting a gateway in a process of its own, and talking to it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.errors import ReBenchError, UsageError
from re_bench.guest.ipc import FrameError, receive, send
from re_bench_gateway.settings import Budget, Settings, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_MESSAGE = 16 << 20
_START_S = 60.0
_ANSWER_S = 30.0
_GRACE_S = 60.0
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH", "RE_BENCH_CACHE")
_NETWORK = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir")


class Gateway:
    """A running gateway. Its methods may be called by any thread.

    Attributes:
        socket: the Unix socket that it listens on, for the holder of ``token``.
        address: its base URL on 127.0.0.1, if it was asked to listen there.
        token: what clients send as API key.
    """

    def __init__(self, channel: socket.socket, process: subprocess.Popen[bytes], ready: dict[str, Any]) -> None:
        self._channel, self._process = channel, process
        self._lock = threading.Lock()
        self.socket = Path(ready["socket"])
        self.address: str | None = ready["address"]
        self.token: str = ready["token"]
        self._sockets = {self.token: self.socket}

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs and answers."""
        return self._channel.fileno() >= 0 and self._process.poll() is None

    def usage(self, token: str | None = None) -> Usage:
        """Return what has been used in all, or with one session's token.

        Raises:
            ReBenchError: if there is no such session, or the gateway has ended.
        """
        return Usage.model_validate(self._ask({"do": "usage", "token": token or self.token}))

    def open_session(
        self, budget: Budget | None = None, *, name: str = "session", key: str | None = None, calls: int | None = None
    ) -> str:
        """Return a new token, for calls within a budget of its own and the gateway's.

        Args:
            budget: what the session may spend.
            name: what stands in the log.
            key: the real key of the session's calls, if not the gateway's.
            calls: sent to the upstream at a time, if not as many as the settings say.

        Raises:
            UsageError: if the budget is in dollars and a price is unknown.
            ReBenchError: if the gateway has ended, or has no more descriptors.
        """
        asked = (budget or Budget()).model_dump(mode="json")
        session = self._ask({"do": "open", "name": name, "budget": asked, "key": key, "calls": calls})
        self._sockets[session["token"]] = Path(session["socket"])
        return str(session["token"])

    def socket_of(self, token: str) -> Path:
        """Return the Unix socket of a session, whose connections are bounded apart from those of others.

        Raises:
            UsageError: if there is no such session.
        """
        if token not in self._sockets:
            raise UsageError("no session has this token; it was closed, or is of another gateway")
        return self._sockets[token]

    def close_session(self, token: str) -> Usage:
        """Accept no further calls with a token, and return what it has used; what runs upstream already goes on.

        What is not sent upstream yet ends with 401.

        Raises:
            ReBenchError: if there is no such session, or the gateway has ended.
        """
        usage = Usage.model_validate(self._ask({"do": "close", "token": token}))
        self._sockets.pop(token, None)
        return usage

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            return _exchange(self._channel, message, _ANSWER_S)


@contextmanager
def serving(settings: Settings) -> Iterator[Gateway]:
    """Run a gateway for as long as the block lasts, or this process.

    Raises:
        UsageError: if it cannot run with these settings, or its packages are missing.
        ReBenchError: if it does not start.
    """
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = _started(theirs)
        place: Path | None = None
        try:
            ready = _exchange(ours, _first_message(settings), _START_S)
            gateway = Gateway(ours, process, ready)
            place = gateway.socket.parent
            yield gateway
        finally:
            ours.close()  # what tells it to end
            try:
                _end(process)
            finally:
                if place is not None:
                    shutil.rmtree(place, ignore_errors=True)  # it does so itself unless it was killed


def failure(error: ReBenchError) -> dict[str, Any]:
    """Return the message that reports an error to the other end of the channel."""
    return {"error": str(error), "exit_status": error.exit_status}


def _started(channel: socket.socket) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "re_bench_gateway", str(channel.fileno())],
        pass_fds=[channel.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=2,  # what a plug-in prints must not mix with our own output
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        start_new_session=True,  # an interrupt from a terminal is for us, and we end it
    )


def _first_message(settings: Settings) -> dict[str, Any]:
    # Not in its environment, where a proxy's password would show.
    network = {name: value for name, value in os.environ.items() if name.lower() in _NETWORK}
    return {"settings": settings.model_dump(mode="json"), "environment": network}


def _exchange(channel: socket.socket, message: dict[str, Any], seconds: float) -> dict[str, Any]:
    try:
        channel.settimeout(seconds)
        send(channel, message)
        answer, _descriptors = receive(channel, MAX_MESSAGE, accept_descriptors=False)
    except (OSError, FrameError) as error:
        channel.close()  # a late answer would be taken for that to the next question
        raise ReBenchError(
            f"the gateway has ended or does not answer ({type(error).__name__}); its stderr may say why"
        ) from None
    if "error" in answer:
        kind = UsageError if answer.get("exit_status") == UsageError.exit_status else ReBenchError
        raise kind(answer["error"])
    return answer


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_GRACE_S)
    except BaseException:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
        raise
