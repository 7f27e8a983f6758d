"""The MLAgentBench research agent as an agent of Inspect."""

from __future__ import annotations

from re_bench_inspect.mlab.agent import mlab

__all__ = ["mlab"]
