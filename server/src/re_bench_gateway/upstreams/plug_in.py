"""A model written in Python."""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from re_bench.errors import UsageError
from re_bench_gateway.answers import check_completion, parse_object
from re_bench_gateway.errors import UpstreamError, error_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from re_bench_gateway.settings import PlugIn
    from re_bench_gateway.upstreams.protocol import Answer, CallState


class PlugInUpstream:
    """Asks what a factory has returned: ``async answer(request) -> completion``, in the gateway's event loop.

    Raises:
        UsageError: if it cannot be imported or made.
    """

    def __init__(self, settings: PlugIn) -> None:
        self._answer = _load(settings)

    @asynccontextmanager
    async def ask(self, request: dict[str, Any], state: CallState) -> AsyncIterator[Answer]:
        """Ask it for a whole completion."""
        state.begun = True
        try:
            completion = await self._checked_answer(request)
        except UpstreamError:
            state.begun = False
            raise
        yield completion

    async def close(self) -> None:
        """Do nothing."""

    async def _checked_answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            completion = await self._answer(request)
        except UpstreamError:
            raise
        except Exception:  # noqa: BLE001 - whatever it is, it is a failure of this call alone
            traceback.print_exc()
            raise _failed("the plug-in model failed; the gateway's stderr says why") from None
        try:
            return check_completion(parse_object(json.dumps(completion).encode()))
        except (UpstreamError, ValueError, TypeError, RecursionError):
            raise _failed("the plug-in model returned something that is no chat.completion") from None


def _failed(message: str) -> UpstreamError:
    return UpstreamError(500, error_body(message, "server_error", code="upstream_failed"))


def _load(settings: PlugIn) -> Callable[[dict[str, Any]], Awaitable[Any]]:
    module, _colon, function = settings.factory.partition(":")
    if settings.path is not None:
        sys.path.insert(0, str(settings.path.resolve()))
    try:
        factory = getattr(importlib.import_module(module), function)
        answer: Callable[[dict[str, Any]], Awaitable[Any]] = factory(**settings.arguments)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"the plug-in model {settings.factory!r} cannot be made: {type(error).__name__}: {error}"
        ) from error
    return answer
