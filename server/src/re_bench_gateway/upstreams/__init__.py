"""What answers calls: a server that speaks OpenAI's API, or a model written in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from re_bench_gateway.settings import PlugIn
from re_bench_gateway.upstreams.openai_server import OpenAIServer
from re_bench_gateway.upstreams.plug_in import PlugInUpstream

if TYPE_CHECKING:
    from re_bench_gateway.settings import Settings
    from re_bench_gateway.upstreams.protocol import Upstream

__all__ = ["open_upstream"]


def open_upstream(settings: Settings) -> Upstream:
    """Return the upstream of a gateway.

    Raises:
        UsageError: if a plug-in cannot be imported or made.
    """
    if isinstance(settings.upstream, PlugIn):
        return PlugInUpstream(settings.upstream)
    return OpenAIServer(settings.upstream, settings.max_answer_bytes)
