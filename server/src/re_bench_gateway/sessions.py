"""Who may call: tokens, each with a budget of its own within the gateway's."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from re_bench.errors import UsageError
from re_bench_gateway.budget import Amount, Ledger
from re_bench_gateway.errors import ApiError, bad_key, too_busy
from re_bench_gateway.prices import Terms, check_priced, terms_of
from re_bench_gateway.settings import Budget, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from pathlib import Path

    from re_bench_gateway.settings import Model, SessionLimits, Settings
    from re_bench_gateway.upstreams.protocol import CallState

_PICO = 10**12
_REST = 4  # so that one session takes a fifth of the time
_SHORT_S = 0.01  # what needs no rest


@dataclass(eq=False)
class Session:
    """One token's holder. Its ``name`` stands in the log, its token and its key nowhere."""

    name: str
    ledger: Ledger
    limits: SessionLimits
    token: str = field(repr=False)
    key: str | None = field(default=None, repr=False)
    failed: int = 0
    refused: int = 0
    log_bytes: int = 0
    """Written to the log for its calls."""
    free_log_bytes: int = 0
    """Of these, for calls that cost nothing."""
    request_bytes: int = 0
    """Of its requests that have not ended."""
    closed: bool = False
    socket: Path | None = None
    """Its own, of a session that was opened."""
    parsing: Parsing = field(init=False, repr=False)
    slots: asyncio.Semaphore = field(init=False, repr=False)
    """For its calls that are sent upstream."""
    _calls: dict[asyncio.Task[None], CallState] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.slots = asyncio.Semaphore(self.limits.calls)
        self.parsing = Parsing()

    @contextmanager
    def calling(self, state: CallState) -> Iterator[Request]:
        """Let the current task make a call, which ends with the session unless it has begun.

        Raises:
            ApiError: instead of the cancellation, if the session was closed before the call had begun.
        """
        task = asyncio.current_task()
        assert task is not None
        request = Request(self)
        self._calls[task] = state
        try:
            yield request
        except asyncio.CancelledError:
            if self.closed and not state.begun:
                raise unknown_token() from None
            raise
        finally:
            del self._calls[task]
            request.release()

    def close(self) -> None:
        """End the calls that have not begun."""
        self.closed = True
        for task, state in self._calls.items():
            if not state.begun:
                task.cancel()

    def usage(self, *, priced: bool) -> Usage:
        """Return what the session has used."""
        spent = self.ledger.spent
        picodollars, tokens, requests = self.ledger.remaining()
        left = Budget(
            dollars=None if picodollars is None else picodollars / _PICO,
            tokens=tokens,
            requests=requests,
        )
        return Usage(
            requests=spent.requests,
            failed=self.failed,
            refused=self.refused,
            prompt_tokens=spent.prompt,
            completion_tokens=spent.completion,
            dollars=spent.picodollars / _PICO if priced else None,
            remaining=left,
        )


class Parsing:
    """Bounds the time that parsing a session's requests takes of the others, as refused ones cost nothing."""

    def __init__(self) -> None:
        self._lock, self._next = asyncio.Lock(), 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until the session may parse; what takes long is followed by a rest of several times as long."""
        async with self._lock:
            await asyncio.sleep(self._next - time.monotonic())
            started = time.monotonic()
            try:
                yield
            finally:
                now = time.monotonic()
                if now - started > _SHORT_S:
                    self._next = now + _REST * (now - started)


class Request:
    """The body of a session's request, counted for as long as the call lasts."""

    def __init__(self, session: Session) -> None:
        self._session, self._size = session, 0

    def grow(self, size: int) -> None:
        """Count bytes that have arrived.

        Raises:
            ApiError: if the session's requests have too many together.
        """
        self._size += size
        self._session.request_bytes += size
        most = self._session.limits.request_bytes
        if self._session.request_bytes > most:
            raise too_busy(f"The requests of this key that wait or run have more than {most} bytes together.")

    def release(self) -> None:
        """Count nothing any more: the call is over."""
        self._session.request_bytes -= self._size
        self._size = 0


class Sessions:
    """All sessions of a gateway, and the models that they may ask for."""

    def __init__(self, settings: Settings, spent: Mapping[str, Amount] | None = None) -> None:
        """Begin with the main session; ``spent`` is what sessions of an earlier gateway have spent, by their names."""
        self.models: dict[str, tuple[Model, Terms]] = {
            model.name: (model, terms_of(model)) for model in settings.models
        }
        self._key: str | None = getattr(settings.upstream, "key", None)
        self._total = Ledger(settings.budget)
        self._by_digest: dict[bytes, Session] = {}
        self._spent_before = dict(spent or {})
        self._check(settings.budget)
        self._limits = settings.limits
        own = settings.limits.model_copy(update={"calls": settings.upstream.concurrency})
        self.main = self._add("main", self._total, self._key, own)

    def open(self, name: str, budget: Budget, key: str | None, calls: int | None = None) -> Session:
        """Open a session with a budget within the gateway's, a key and a number of calls at a time if it has its own.

        Raises:
            UsageError: if the budget is in dollars and a price is unknown.
        """
        self._check(budget)
        ledger = Ledger(budget, self._total)
        ledger.settle(Amount(), self._spent_before.pop(name, Amount()))
        limits = self._limits if calls is None else self._limits.model_copy(update={"calls": calls})
        return self._add(name, ledger, key or self._key, limits)

    def close(self, token: str) -> Session:
        """Accept no further call with a token; those that have begun go on.

        Raises:
            UsageError: if there is no such session, or it is the main one.
        """
        session = self.known(token)
        if session is self.main:
            raise UsageError("the main session lives as long as the gateway")
        del self._by_digest[_digest(token)]
        session.close()
        return session

    def secrets_of(self, session: Session) -> tuple[str, ...]:
        """Return what must not show in what a session's calls leave behind: its token and key, and the gateway's."""
        return tuple(filter(None, (session.token, session.key, self.main.token, self._key)))

    def keys_of(self, session: Session) -> tuple[str, ...]:
        """Return what the upstream was sent, and must not give to a session: its key, and the gateway's."""
        return tuple(filter(None, (session.key, self._key)))

    def known(self, token: str) -> Session:
        """Return the session with a token.

        Raises:
            UsageError: if there is none.
        """
        session = self._by_digest.get(_digest(token))
        if session is None:
            raise UsageError("no session has this token; it was closed, or is of another gateway")
        return session

    def authenticated(self, authorization: str | None) -> Session:
        """Return the session of a request's ``Authorization`` header.

        Raises:
            ApiError: if there is none.
        """
        scheme, _space, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise bad_key("You didn't provide an API key. Send it as `Authorization: Bearer KEY`.")
        # Looked up by digest, so that the time taken tells nothing about a token.
        session = self._by_digest.get(_digest(token.strip()))
        if session is None:
            raise unknown_token()
        return session

    def priced(self) -> bool:
        """Tell whether all models have a price."""
        return all(terms.priced for _model, terms in self.models.values())

    def _add(self, name: str, ledger: Ledger, key: str | None, limits: SessionLimits) -> Session:
        token = f"rb-{secrets.token_urlsafe(32)}"
        session = Session(name, ledger, limits, token, key)
        self._by_digest[_digest(token)] = session
        return session

    def _check(self, budget: Budget) -> None:
        check_priced(((name, terms) for name, (_model, terms) in self.models.items()), budget)


def unknown_token() -> ApiError:
    """Return the error of a token that no session has, or no longer."""
    return bad_key("Incorrect API key provided. The key of this server is the token of a session.")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()
