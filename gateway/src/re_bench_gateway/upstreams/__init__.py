"""What answers: one small protocol, and what speaks it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from re_bench_gateway.settings import Settings

__all__ = ["Answer", "Asked", "Upstream", "open_upstream"]

Answer = dict[str, Any] | AsyncGenerator[list[bytes], None]
"""A whole completion; or the data of the events of a stream, as many at a time as have arrived."""


@dataclass
class Asked:
    """How one call is going."""

    key: str | None = field(repr=False)
    """The real key to ask with."""
    retries: int = 0
    begun: bool = False
    """Whether something may have been produced, and so must be paid for."""


class Upstream(Protocol):
    """Something that answers requests."""

    def asking(self, request: dict[str, Any], asked: Asked) -> AbstractAsyncContextManager[Answer]:
        """Ask; leaving the block early gives up what is still to come.

        A stream is one way to answer a request for a stream. A whole completion is another: the gateway cuts it up.

        Raises:
            UpstreamError: if there is no answer, after all retries.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


def open_upstream(settings: Settings) -> Upstream:
    """Return the upstream that the settings name.

    Raises:
        UsageError: if it cannot be had.
    """
    from re_bench_gateway.upstreams.compatible import CompatibleUpstream  # noqa: PLC0415 - each imports this module
    from re_bench_gateway.upstreams.plug_in import PlugInUpstream  # noqa: PLC0415
    from re_bench_gateway.upstreams.recording import RecordingUpstream  # noqa: PLC0415

    match settings.upstream.kind:
        case "openai":
            return CompatibleUpstream(settings.upstream)
        case "recording":
            return RecordingUpstream(settings.upstream)
        case "plug-in":
            return PlugInUpstream(settings.upstream)
