"""What models cost and how much they read, where that is known; options of the command say it for all others."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Prices", "known_context", "known_prices"]


@dataclass(frozen=True)
class Prices:
    """Dollars a million tokens."""

    prompt: float
    completion: float

    def dollars(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Return the price of so many tokens."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


_KNOWN = {
    # Dollars a million prompt and completion tokens, and the context in tokens: OpenAI's pages of the models, 2025.
    # Providers change prices; `--price` overrides these.
    "gpt-4o": (Prices(2.50, 10.0), 128_000),
    "gpt-4o-mini": (Prices(0.15, 0.60), 128_000),
    "gpt-4.1": (Prices(2.0, 8.0), 1_047_576),
    "gpt-4.1-mini": (Prices(0.40, 1.60), 1_047_576),
    "gpt-4.1-nano": (Prices(0.10, 0.40), 1_047_576),
    "o3": (Prices(2.0, 8.0), 200_000),
    "o4-mini": (Prices(1.10, 4.40), 200_000),
    "gpt-5": (Prices(1.25, 10.0), 400_000),
    "gpt-5-mini": (Prices(0.25, 2.0), 400_000),
    "gpt-5-nano": (Prices(0.05, 0.40), 400_000),
}


def known_prices(model: str) -> Prices | None:
    """Return a model's prices if they are known."""
    known = _KNOWN.get(model)
    return known[0] if known else None


def known_context(model: str) -> int | None:
    """Return how many tokens a model reads and writes together, if that is known."""
    known = _KNOWN.get(model)
    return known[1] if known else None
