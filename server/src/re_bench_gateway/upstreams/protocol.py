"""The protocol of what answers calls."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

Answer = dict[str, Any] | AsyncGenerator[list[bytes], None]
"""A whole completion; or the data of the events of a stream, as many at a time as have arrived."""


@dataclass
class CallState:
    """How one call is going."""

    key: str | None = field(repr=False)
    """The real key to ask with."""
    retries: int = 0
    begun: bool = False
    """Whether something may have been produced, and so must be paid for."""


class Upstream(Protocol):
    """Something that answers requests."""

    def ask(self, request: dict[str, Any], state: CallState) -> AbstractAsyncContextManager[Answer]:
        """Ask; leaving the block early gives up what is still to come.

        A stream is one way to answer a request for a stream. A whole completion is another: the gateway splits it.

        Raises:
            UpstreamError: if there is no answer, after all retries.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
