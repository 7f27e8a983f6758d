"""Access to language models: one client for any OpenAI-compatible server, and what is spent on it."""

from __future__ import annotations

from mlab_agent.models.client import Model, ModelSettings
from mlab_agent.models.errors import BudgetSpent, ContextFull, ModelError
from mlab_agent.models.messages import Message, Reply, ToolCall, assistant, message_bytes, system, tool_result, user
from mlab_agent.models.prices import Prices, known_context, known_prices
from mlab_agent.models.spending import Caps, Spending

__all__ = [
    "BudgetSpent",
    "Caps",
    "ContextFull",
    "Message",
    "Model",
    "ModelError",
    "ModelSettings",
    "Prices",
    "Reply",
    "Spending",
    "ToolCall",
    "assistant",
    "known_context",
    "known_prices",
    "message_bytes",
    "system",
    "tool_result",
    "user",
]
