"""What the SDK lets happen while a session is created, and we do not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from re_bench_environment.replying import reply

if TYPE_CHECKING:
    from re_bench_environment.replying import Application, Message, Receive, Scope, Send

__all__ = ["Creating"]

_BAD = 400


class Creating:
    """An application around the SDK's.

    Two requests at a time for one id would make two sessions, of which the SDK forgets one. A toolset comes after the
    session, which is forgotten if it does not fit; those that fit reach the web with keys of the server's environment.
    """

    def __init__(self, application: Application) -> None:
        """Wrap ``application``, the SDK's."""
        self._application = application
        self._ids: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["path"] != "/create":
            await self._application(scope, receive, send)
            return
        sid = dict(scope["headers"]).get(b"x-session-id", b"").strip()
        if sid in self._ids:
            await reply(send, _BAD, {"detail": "this session is being created already"})
            return
        self._ids.add(sid)
        try:
            await self._create(scope, receive, send)
        finally:
            self._ids.remove(sid)

    async def _create(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = bytearray(), True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)

        async def again() -> Message:
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        if _wants_toolset(body):
            await reply(send, _BAD, {"detail": "this environment has tools of its own and takes no toolset"})
        else:
            await self._application(scope, again, send)


def _wants_toolset(body: bytearray) -> bool:
    try:
        asked: Any = json.loads(body)
    except (ValueError, RecursionError):  # which the SDK refuses
        return False
    return isinstance(asked, dict) and asked.get("toolset_name") is not None
