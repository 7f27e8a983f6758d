"""One call from its reservation to its line in the log."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Self

from starlette.responses import Response

from re_bench.data.redaction import redacted_value
from re_bench_gateway.budget import Amount
from re_bench_gateway.errors import ApiError, UpstreamError, internal, over_budget, unknown_model
from re_bench_gateway.messages import parse_chunk, parse_object, parse_request
from re_bench_gateway.prices import reported, worst_case
from re_bench_gateway.streams import DONE, Assembled, StreamRedaction, chunks_of, event
from re_bench_gateway.upstreams import CallState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from re_bench_gateway.log import CallLog
    from re_bench_gateway.sessions import Session, Sessions

Ending = Literal["answered", "disconnected", "upstream_error", "refused", "error"]
"""How a call ended: whole; left by its client, or cut by the gateway's end, before that; or without an answer."""
_TOO_MANY = 429


class Call:
    """A call within a ``with`` block: whatever happens there, it is settled and logged exactly once."""

    def __init__(self, sessions: Sessions, log: CallLog, session: Session, body: bytes) -> None:
        """Begin with the body of a request; as objects it takes many times its bytes, so that they are not kept.

        Raises:
            ApiError: if it is no request, asks for a model that is not allowed, or for more output than that has.
        """
        self.state = CallState(session.key)
        self.headers = {"x-request-id": f"req_{secrets.token_hex(8)}"}
        self._log, self._session, self._body = log, session, body
        self._keys, self._secrets = sessions.keys_of(session), sessions.secrets_of(session)
        self._started, self._time = time.monotonic(), datetime.now(UTC).isoformat(timespec="milliseconds")
        request = parse_request(body)
        if request["model"] not in sessions.models:
            raise unknown_model(request["model"])
        model, self._terms = sessions.models[request["model"]]
        self._asked_for = model.asks_for or model.name
        self._worst = worst_case(request, len(body), self._terms)
        self._wants_stream = bool(request.get("stream"))
        self._wants_usage = bool((request.get("stream_options") or {}).get("include_usage"))
        self._reserved = Amount()
        self._assembled: Assembled | None = None
        self._closed = False

    async def reserve(self) -> None:
        """Reserve what the call may cost.

        Raises:
            ApiError: if the budget or the log does not cover it.
        """
        if self._log.broken:
            raise internal("the gateway cannot write its log and makes no more calls")
        if self._session.log_bytes >= self._session.limits.log_bytes:
            raise over_budget("the log of this key's calls is full.")
        await self._session.ledger.reserve(self._worst)
        self._reserved = self._worst

    def upstream_request(self) -> dict[str, Any]:
        """Return what to ask the upstream."""
        request = {**parse_object(self._body), "model": self._asked_for}
        if self._wants_stream:
            # Always, because the call is settled by it; the client gets it only if it asked.
            request["stream_options"] = {**(request.get("stream_options") or {}), "include_usage": True}
        return request

    def answered(self, completion: dict[str, Any]) -> Response:
        """Settle and log the call, which has its whole answer, and return the response to the client."""
        self._close("answered", reported(completion.get("usage"), self._terms) or self._reserved, response=completion)
        answer = redacted_value(completion, self._keys)
        if not self._wants_stream:
            return Response(json.dumps(answer, separators=(",", ":")), 200, self.headers, "application/json")
        events = b"".join(map(event, chunks_of(answer, include_usage=self._wants_usage)))
        return Response(events + DONE, 200, self.headers, "text/event-stream")

    def events(self, stream: AsyncIterator[str]) -> AsyncGenerator[bytes, None]:
        """Return the events for the client as they come. The call is settled and logged before the last one."""
        self._assembled = Assembled()
        return self._events(stream, self._assembled)

    async def _events(self, stream: AsyncIterator[str], assembled: Assembled) -> AsyncGenerator[bytes, None]:
        redaction = StreamRedaction(self._keys)
        ending: Ending = "answered"
        last = DONE
        try:
            async for data in stream:
                chunk = parse_chunk(data, self._keys)
                assembled.add(chunk)
                only_usage = not chunk["choices"] and chunk.get("usage") is not None
                if self._wants_usage or not only_usage:
                    for each in redaction.add(chunk):
                        yield event(each)
        except UpstreamError as error:
            ending, last = "upstream_error", event(error.body)
        self._close_stream(ending)
        yield b"".join(map(event, redaction.rest())) + last

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if self._closed:
            return
        if self._assembled is not None:
            self._close_stream("disconnected")
            return
        # What an upstream has begun may have to be paid for.
        begun = self._reserved if self.state.begun else Amount()
        if isinstance(error, UpstreamError):
            self._session.failed += 1
            self._close("upstream_error", begun, error={"status": error.status, **error.body})
        elif isinstance(error, ApiError):
            self._session.refused += error.status == _TOO_MANY  # over its budget
            self._close("refused", Amount(), error={"status": error.status, **error.body})
        else:
            ending: Ending = "disconnected" if isinstance(error, asyncio.CancelledError) else "error"
            self._close(ending, begun, error={"status": 500, "error": {"message": type(error).__name__}})

    def _close_stream(self, ending: Ending) -> None:
        """Settle a stream by the reported usage if there is one; otherwise it may have cost all that is reserved."""
        assert self._assembled is not None
        spent = reported(self._assembled.usage, self._terms) or self._reserved
        self._close(ending, spent, response=self._assembled.completion())

    def _close(self, ending: Ending, spent: Amount, **outcome: Any) -> None:
        self._closed = True
        self._session.ledger.settle(self._reserved, spent)
        if spent == Amount() and self._session.log_bytes >= self._session.limits.log_bytes:
            return  # it is counted
        entry = {
            "v": 1,
            "time": self._time,
            "id": self.headers["x-request-id"],
            "session": self._session.name,
            "ending": ending,
            "asked_for": self._asked_for,
            "request": parse_object(self._body),
            **outcome,
            "tokens": {"prompt": spent.prompt, "completion": spent.completion},
            "dollars": float(spent.dollars) if self._terms.priced else None,
            "seconds": round(time.monotonic() - self._started, 6),
            "retries": self.state.retries,
        }
        self._session.log_bytes += self._log.write(entry, self._secrets)
