"""Access to language models, and the costs of calls. The client for OpenAI-compatible servers is in ``client``."""

from __future__ import annotations

from mlab_agent.models.costs import BudgetSpent, Caps, Prices, Spending, known_context, known_prices
from mlab_agent.models.model import (
    ContextFull,
    LanguageModel,
    Message,
    ModelError,
    ModelProfile,
    ModelSettings,
    Reply,
    ToolCall,
    assistant,
    message_bytes,
    system,
    tool_result,
    user,
)

__all__ = [
    "BudgetSpent",
    "Caps",
    "ContextFull",
    "LanguageModel",
    "Message",
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
