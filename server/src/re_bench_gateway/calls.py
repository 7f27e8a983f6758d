"""One call from its reservation to its line in the log."""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Self

from re_bench_gateway.answers import chunk_in, parse_object
from re_bench_gateway.budget import Amount, BudgetCheck
from re_bench_gateway.call_cost import charged, worst_case
from re_bench_gateway.errors import ApiError, UpstreamError, over_budget, unknown_model
from re_bench_gateway.redaction import StreamRedaction
from re_bench_gateway.requests import parse_request
from re_bench_gateway.sessions import unknown_token
from re_bench_gateway.streaming import Assembled

if TYPE_CHECKING:
    from re_bench_gateway.log import CallLog
    from re_bench_gateway.sessions import Session, Sessions
    from re_bench_gateway.upstreams.protocol import CallState

_PICO = 10**12
Ending = Literal["answered", "disconnected", "upstream_error", "refused", "error"]
"""How a call ended: whole; left by its client, or cut by our end, before that; or without an answer."""


@dataclass
class CallAccounting:
    """What all calls share: sessions, the log, and who waits for a reservation."""

    sessions: Sessions
    log: CallLog

    def __post_init__(self) -> None:
        self._settled = asyncio.Event()

    async def reserve(self, session: Session, amount: Amount) -> None:
        """Reserve what a call may cost, as soon as running calls leave room for it.

        Raises:
            ApiError: if the budget does not cover it even if they cost nothing.
        """
        while (check := session.ledger.check(amount)) is BudgetCheck.LATER:
            await self._settled.wait()
        if check is BudgetCheck.NEVER:
            raise over_budget(_quota_message(session, amount))
        session.ledger.reserve(amount)

    def settle(self, session: Session, reserved: Amount, spent: Amount) -> None:
        """Charge what a call did cost, and let those that wait look again."""
        session.ledger.settle(reserved, spent)
        self._settled.set()
        self._settled = asyncio.Event()


class Call:
    """A call within a ``with`` block: whatever happens there, it is settled and logged exactly once."""

    def __init__(self, accounting: CallAccounting, session: Session, body: bytes, state: CallState) -> None:
        """Begin with the body of a request; as objects it takes many times its bytes, so that they are not kept.

        Raises:
            ApiError: if it is no request, asks for a model that is not allowed, or for more output than that has.
        """
        self.id = f"req_{secrets.token_hex(8)}"
        self.assembled = Assembled()
        self.state = state
        self._accounting, self._session, self._body = accounting, session, body
        self.chunks = StreamRedaction(accounting.sessions.keys_of(session))
        """What the client gets of a stream."""
        self._reserved: Amount | None = None
        self._closed = False
        self._started = time.monotonic()
        self._time = datetime.now(UTC).isoformat(timespec="milliseconds")
        request = parse_request(body)
        entry = accounting.sessions.models.get(request["model"])
        if entry is None:
            raise unknown_model(request["model"])
        model, self._terms = entry
        self._asked_for = model.asks_for or model.name
        self._worst = worst_case(request, len(body), self._terms)
        self.wants_stream = bool(request.get("stream"))
        self.wants_usage = bool((request.get("stream_options") or {}).get("include_usage"))
        """Whether the client asked for the usage at the end of its stream."""

    @property
    def keys(self) -> tuple[str, ...]:
        """What must not show in an answer."""
        return self._accounting.sessions.keys_of(self._session)

    def upstream_request(self) -> dict[str, Any]:
        """Return what to ask the upstream."""
        request = {**parse_object(self._body), "model": self._asked_for}
        if self.wants_stream:
            # Always, because the call is settled by it; the client gets it only if it asked.
            request["stream_options"] = {**(request.get("stream_options") or {}), "include_usage": True}
        return request

    async def reserve(self) -> None:
        """Reserve what the call may cost.

        Raises:
            ApiError: if the budget or the log does not cover it.
        """
        self._accounting.log.check()
        if self._session.log_bytes >= self._session.limits.log_bytes:
            raise over_budget("You exceeded your current quota: the log of this key's calls is full.")
        await self._accounting.reserve(self._session, self._worst)
        self._reserved = self._worst

    def add(self, data: bytes) -> None:
        """Take in the data of an event of the upstream.

        Raises:
            UpstreamError: if it tells of an error, or is no chunk.
        """
        chunk = chunk_in(data, self.keys)
        self.assembled.add(chunk)
        only_usage = not chunk.get("choices") and chunk.get("usage") is not None
        if self.wants_usage or not only_usage:
            self.chunks.add(chunk)

    def answered(self, completion: dict[str, Any]) -> None:
        """Settle and log the call: it has its whole answer."""
        reserved = self._reserved or Amount()
        self._close("answered", charged(completion.get("usage"), self._terms) or reserved, response=completion)

    def streamed(self, ending: Ending = "answered") -> None:
        """Settle and log the call by the reported usage if there is one; else it may have cost all that is reserved."""
        if self._reserved is not None and not self._closed:
            spent = charged(self.assembled.usage, self._terms) or self._reserved
            self._close(ending, spent, response=self.assembled.completion())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if self._closed:
            return
        # What an upstream has begun may have to be paid for.
        begun = self._reserved if self._reserved is not None and self.state.begun else Amount()
        if isinstance(error, asyncio.CancelledError) and self._session.closed and not self.state.begun:
            error = unknown_token()  # which is what the client gets
        if isinstance(error, UpstreamError):
            self._session.failed += 1
            self._close("upstream_error", begun, error={"status": error.status, **error.body})
        elif isinstance(error, ApiError):
            self._session.refused += error.status == 429  # noqa: PLR2004 - over its budget
            self._close("refused", Amount(), error={"status": error.status, **error.body})
        else:
            ending: Ending = "disconnected" if isinstance(error, asyncio.CancelledError) else "error"
            self._close(ending, begun, error={"status": 500, "error": {"message": type(error).__name__}})

    def _close(self, ending: Ending, spent: Amount, **outcome: Any) -> None:
        self._closed = True
        if self._reserved is not None:
            self._accounting.settle(self._session, self._reserved, spent)
        session, limits = self._session, self._session.limits
        free = spent == Amount()
        if free and session.free_log_bytes >= limits.free_log_bytes:
            return  # it is counted, and what is logged must not be the session's choice
        size = self._log(ending, spent, request=parse_object(self._body), **outcome)
        session.log_bytes += size
        session.free_log_bytes += size if free else 0
        if free and session.free_log_bytes >= limits.free_log_bytes:
            message = f"calls of {session.name} that cost nothing are counted from here on, and not logged"
            self._log("refused", spent, request=None, error={"status": 429, "error": {"message": message}})

    def _log(self, ending: Ending, spent: Amount, **outcome: Any) -> int:
        entry = {
            "v": 1,
            "time": self._time,
            "id": self.id,
            "session": self._session.name,
            "ending": ending,
            "asked_for": self._asked_for,
            **outcome,
            "tokens": {"prompt": spent.prompt, "completion": spent.completion},
            "dollars": spent.picodollars / _PICO if self._terms.priced else None,
            "seconds": round(time.monotonic() - self._started, 6),
            "retries": self.state.retries,
        }
        return self._accounting.log.write(entry, self._accounting.sessions.secrets_of(self._session))


def _quota_message(session: Session, amount: Amount) -> str:
    picodollars, tokens, requests = session.ledger.remaining()
    left = [
        f"{value} {unit}"
        for value, unit in (
            (None if picodollars is None else f"${picodollars / _PICO:.6f}", "of its dollars"),
            (tokens, "tokens"),
            (requests, "requests"),
        )
        if value is not None
    ]
    most = f"{amount.tokens} tokens and ${amount.picodollars / _PICO:.6f}"
    return f"You exceeded your current quota: this call may take {most}, and the budget has left: {', '.join(left)}."
