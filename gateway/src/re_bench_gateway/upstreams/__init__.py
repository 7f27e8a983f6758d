"""What answers calls: a server that speaks OpenAI's API, or a model written in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from re_bench_gateway.settings import PlugIn
from re_bench_gateway.upstreams.openai_server import OpenAIServer
from re_bench_gateway.upstreams.plug_in import PlugInUpstream

if TYPE_CHECKING:
    from re_bench_gateway.settings import OpenAICompatible
    from re_bench_gateway.upstreams.protocol import Upstream

__all__ = ["open_upstream"]


def open_upstream(settings: OpenAICompatible | PlugIn) -> Upstream:
    """Return the upstream of these settings.

    Raises:
        UsageError: if a plug-in cannot be imported or made.
    """
    return PlugInUpstream(settings) if isinstance(settings, PlugIn) else OpenAIServer(settings)
