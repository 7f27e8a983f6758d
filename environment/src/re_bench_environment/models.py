"""The model of a task that has one: a gateway between sessions and the model, which holds every key.

A task with ``pool.py`` wants a model. A session with a key gets OpenAI's, or that of the server at ``OPENAI_BASE_URL``,
in profile ``paper``; any other gets the task's stand-in, which knows no held-out problem.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError
from re_bench_gateway import Budget, Gateway, Model, OpenAICompatible, PlugIn, Settings, serving

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from re_bench_environment.offers import Offer

__all__ = ["Access", "Models", "key_among", "needs_key", "wants_model"]

MODEL = "gpt-3.5-turbo-0125"
_MODELS = (Model(name=MODEL), Model(name="gpt-3.5-turbo", asks_for=MODEL))
_KEYS = ("openai_api_key", "OPENAI_API_KEY")
_SHOWN_SPLITS = ("train", "valid")


def key_among(secrets: Mapping[str, str]) -> str | None:
    """Return the one secret of a session that is used; all others are dropped."""
    return next((secrets[name] for name in _KEYS if secrets.get(name)), None)


def wants_model(offer: Offer) -> bool:
    """Tell whether a task's solutions talk to a model."""
    return (offer.task.directory / "pool.py").is_file()


def needs_key(offer: Offer) -> bool:
    """Tell whether an attempt cannot be scored without a key."""
    return wants_model(offer) and offer.profile_name == "paper"


@dataclass(frozen=True)
class Access:
    """What one session may do with a model."""

    gateway: Gateway
    token: str = field(repr=False)
    stand_in: bool

    async def close(self) -> None:
        """Accept no further call."""
        with suppress(ReBenchError, OSError):  # the gateway may be gone
            await asyncio.to_thread(self.gateway.close_session, self.token)


class Models:
    """The gateways of a server: one for each stand-in and one for the real model, started when first needed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: dict[str, Gateway] = {}
        self._stack = ExitStack()
        self._starting = asyncio.Lock()

    async def open(self, offer: Offer, name: str, key: str | None, budget: Budget) -> Access:
        """Return a session's access to the model of a task.

        Args:
            offer: the task, which wants a model.
            name: what stands in the gateway's log.
            key: the session's key, which goes to the gateway and nowhere else.
            budget: what the session may spend.

        Raises:
            ReBenchError: if the gateway cannot be started.
        """
        real = key is not None and needs_key(offer)
        gateway = await self._gateway(offer, real=real)
        token = await asyncio.to_thread(gateway.open_session, budget, name=name, key=key if real else None)
        return Access(gateway, token, stand_in=not real)

    async def close(self) -> None:
        """End all gateways."""
        async with self._starting:
            await asyncio.to_thread(self._stack.close)
            self._running.clear()

    async def _gateway(self, offer: Offer, *, real: bool) -> Gateway:
        kind = "model" if real else f"stand-in-{offer.task.name}"
        async with self._starting:
            if kind not in self._running:
                settings = self._settings(offer, kind, real=real)
                self._running[kind] = await asyncio.to_thread(self._stack.enter_context, serving(settings))
            return self._running[kind]

    def _settings(self, offer: Offer, kind: str, *, real: bool) -> Settings:
        self._directory.mkdir(mode=0o700, exist_ok=True)
        base = os.environ.get("OPENAI_BASE_URL")
        upstream: OpenAICompatible | PlugIn
        if real:
            upstream = OpenAICompatible(base_url=base) if base else OpenAICompatible()
        else:
            arguments = {"seed": 0, "splits": list(_SHOWN_SPLITS)}
            upstream = PlugIn(factory="pool:answer", path=offer.task.directory, arguments=arguments)
        # By TCP too, for scorers, which run outside of all sandboxes.
        return Settings(upstream=upstream, models=_MODELS, log=self._directory / f"{kind}.jsonl", tcp=True)
