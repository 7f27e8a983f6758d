"""Access to language models: a client for any OpenAI-compatible server, and the costs of its calls."""

from __future__ import annotations

from mlab_agent.models.client import Model, ModelSettings
from mlab_agent.models.costs import BudgetSpent, Caps, Prices, Spending, known_context, known_prices
from mlab_agent.models.messages import Message, Reply, ToolCall, assistant, message_bytes, system, tool_result, user
from mlab_agent.models.model import ContextFull, LanguageModel, ModelError, ModelProfile

__all__ = [
    "BudgetSpent",
    "Caps",
    "ContextFull",
    "LanguageModel",
    "Message",
    "Model",
    "ModelError",
    "ModelProfile",
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
