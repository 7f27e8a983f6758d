"""A demonstration: a small task, and a stand-in that plays a model which solves it."""

from __future__ import annotations

from mlab_agent.demo.player import play
from mlab_agent.demo.task import lay_out

__all__ = ["lay_out", "play"]
