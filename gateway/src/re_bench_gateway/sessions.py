"""Who may call: tokens, each with a budget of its own within the gateway's."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from re_bench.errors import UsageError
from re_bench_gateway.budget import Amount, Ledger
from re_bench_gateway.errors import bad_key
from re_bench_gateway.prices import Terms, check_priced, terms_of
from re_bench_gateway.settings import Budget, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench_gateway.settings import Model, Settings

_PICO = 10**12


@dataclass(eq=False)
class Session:
    """One token's holder. Its ``name`` stands in the log, its token and its key nowhere."""

    name: str
    ledger: Ledger
    token: str = field(repr=False)
    key: str | None = field(default=None, repr=False)
    failed: int = 0
    refused: int = 0

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
        self.main = self._add("main", self._total, self._key)

    def open(self, name: str, budget: Budget, key: str | None) -> Session:
        """Open a session with a budget within the gateway's, and a key of its own if it has one.

        Raises:
            UsageError: if the budget is in dollars and a price is unknown.
        """
        self._check(budget)
        ledger = Ledger(budget, self._total)
        ledger.settle(Amount(), self._spent_before.pop(name, Amount()))
        return self._add(name, ledger, key or self._key)

    def close(self, token: str) -> Session:
        """Accept no further call with a token; those that run go on.

        Raises:
            UsageError: if there is no such session, or it is the main one.
        """
        session = self.known(token)
        if session is self.main:
            raise UsageError("the main session lives as long as the gateway")
        del self._by_digest[_digest(token)]
        return session

    def secrets_of(self, session: Session) -> tuple[str, ...]:
        """Return what must not show in what a session's calls leave behind: its token and key, and the gateway's."""
        return tuple(filter(None, (session.token, session.key, self.main.token, self._key)))

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
            raise bad_key("Incorrect API key provided. The key of this server is the token of a session.")
        return session

    def priced(self) -> bool:
        """Tell whether all models have a price."""
        return all(terms.priced for _model, terms in self.models.values())

    def _add(self, name: str, ledger: Ledger, key: str | None) -> Session:
        token = f"rb-{secrets.token_urlsafe(32)}"
        session = Session(name, ledger, token, key)
        self._by_digest[_digest(token)] = session
        return session

    def _check(self, budget: Budget) -> None:
        check_priced(((name, terms) for name, (_model, terms) in self.models.items()), budget)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()
