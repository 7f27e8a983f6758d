"""One call from its reservation to its line in the log."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Self

from re_bench_gateway.budget import Amount, BudgetCheck
from re_bench_gateway.call_cost import charged, produced, worst_case
from re_bench_gateway.errors import ApiError, UpstreamError, over_budget, unknown_model
from re_bench_gateway.streaming import Assembled
from re_bench_gateway.upstreams.protocol import CallState

if TYPE_CHECKING:
    from re_bench_gateway.log import CallLog
    from re_bench_gateway.sessions import Session, Sessions

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

    def __init__(self, accounting: CallAccounting, session: Session, request: dict[str, Any], size: int) -> None:
        self.id = f"req_{secrets.token_hex(8)}"
        self.assembled = Assembled()
        self._accounting, self._session, self._request, self._size = accounting, session, request, size
        self._reserved: Amount | None = None
        self._closed = False
        self._started = time.monotonic()
        self._time = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = accounting.sessions.models.get(request["model"])
        if entry is None:
            raise unknown_model(request["model"])
        model, self._terms = entry
        self.state = CallState(key=session.key)
        self.upstream_request = {**request, "model": model.asks_for or model.name}
        if request.get("stream"):
            # Always, because the call is settled by it; the client gets it only if it asked.
            self.upstream_request["stream_options"] = {**(request.get("stream_options") or {}), "include_usage": True}

    @property
    def wants_usage(self) -> bool:
        """Whether the client asked for the usage at the end of its stream."""
        return bool((self._request.get("stream_options") or {}).get("include_usage"))

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not show in an answer."""
        return self._accounting.sessions.secrets_of(self._session)

    async def reserve(self) -> None:
        """Reserve what the call may cost.

        Raises:
            ApiError: if the budget does not cover it.
        """
        self._accounting.log.check()
        amount = worst_case(self._request, self._size, self._terms)
        await self._accounting.reserve(self._session, amount)
        self._reserved = amount

    def add(self, data: bytes) -> bytes | None:
        """Take in the data of an event of the upstream; return what the client gets of it, or None."""
        try:
            chunk = json.loads(data)
            self.assembled.add(chunk)
            only_usage = not chunk.get("choices") and chunk.get("usage") is not None
        except (ValueError, TypeError, AttributeError, RecursionError):
            return data  # not understood, and so none of our business
        return None if only_usage and not self.wants_usage else data

    def answered(self, completion: dict[str, Any]) -> None:
        """Settle and log the call: it has its whole answer."""
        reserved = self._reserved or Amount()
        self._close("answered", charged(completion.get("usage"), self._terms) or reserved, response=completion)

    def streamed(self, ending: Ending = "answered") -> None:
        """Settle and log the call by what was streamed so far, by the reported usage if there is one."""
        if self._reserved is not None and not self._closed:
            reported = charged(self.assembled.usage, self._terms)
            spent = reported or produced(self._reserved, self.assembled.output_bytes, self._terms)
            self._close(ending, spent, response=self.assembled.completion())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if self._closed:
            return
        if isinstance(error, UpstreamError):
            self._session.failed += 1
            self._close("upstream_error", Amount(), error={"status": error.status, **error.body})
        elif isinstance(error, ApiError):
            self._session.refused += error.status == 429  # noqa: PLR2004 - over its budget
            self._close("refused", Amount(), error={"status": error.status, **error.body})
        else:
            # What an upstream has begun may have to be paid for.
            spent = self._reserved if self._reserved is not None and self.state.begun else Amount()
            ending: Ending = "disconnected" if isinstance(error, asyncio.CancelledError) else "error"
            self._close(ending, spent, error={"status": 500, "error": {"message": type(error).__name__}})

    def _close(self, ending: Ending, spent: Amount, **outcome: Any) -> None:
        self._closed = True
        if self._reserved is not None:
            self._accounting.settle(self._session, self._reserved, spent)
        entry = {
            "v": 1,
            "time": self._time,
            "id": self.id,
            "session": self._session.name,
            "ending": ending,
            "asked_for": self.upstream_request["model"],
            "request": self._request,
            **outcome,
            "tokens": {"prompt": spent.prompt, "completion": spent.completion},
            "dollars": spent.picodollars / _PICO if self._terms.priced else None,
            "seconds": round(time.monotonic() - self._started, 6),
            "retries": self.state.retries,
        }
        self._accounting.log.write(entry, self.secrets)


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
