"""A metered OpenAI-compatible gateway: what a submission's ``openai`` client talks to instead of a model's server.

:func:`serving` starts it in a process of its own; :mod:`~re_bench_gateway.settings` says what can be set.
docs/gateway.md explains the rest.
"""

from re_bench_gateway.budget import models_of
from re_bench_gateway.process import Gateway, serving
from re_bench_gateway.settings import Budget, Model, OpenAICompatible, PlugIn, SessionLimits, Settings, Usage

__all__ = [
    "Budget",
    "Gateway",
    "Model",
    "OpenAICompatible",
    "PlugIn",
    "SessionLimits",
    "Settings",
    "Usage",
    "models_of",
    "serving",
]
