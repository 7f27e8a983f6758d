"""Prices and bounds of models, and the cost of a call: the most that it can be, and what the upstream reports."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from re_bench.errors import UsageError
from re_bench_gateway.budget import Amount
from re_bench_gateway.errors import bad_request
from re_bench_gateway.settings import Model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from re_bench.task import manifest
    from re_bench.task.chat_model import ChatModel
    from re_bench_gateway.settings import Budget

_FRAME_TOKENS = 64  # what a chat format adds to the bytes of a request's own JSON
_MOST_TOKENS = 1 << 31  # a report of more is wrong
_LIMITS = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True)
class Terms:
    """Prices of a model in dollars a million tokens, None if unknown, and its bounds in tokens."""

    dollars_in: float | None
    dollars_out: float | None
    context: int
    """The most tokens of a prompt."""
    max_output: int
    """The most tokens of one completion."""

    @property
    def priced(self) -> bool:
        """Whether both prices are known."""
        return self.dollars_in is not None and self.dollars_out is not None

    def cost(self, prompt: int, completion: int) -> Amount:
        """Return the cost of one call with so many tokens."""
        dollars = Decimal(str(self.dollars_in or 0)) * prompt + Decimal(str(self.dollars_out or 0)) * completion
        return Amount(1, prompt, completion, dollars / 1_000_000)


KNOWN = {
    # OpenAI, "New embedding models and API updates", 25 January 2024; bounds: OpenAI's page of the model.
    "gpt-3.5-turbo-0125": Terms(0.50, 1.50, context=16_385, max_output=4_096),
}
"""Models by the name that the upstream knows them by."""


def models_of(model: manifest.Model, chosen: ChatModel | None = None) -> tuple[Model, ...]:
    """Return the settings of a task's model: by its own name, and by each of its aliases.

    Args:
        model: the manifest's, which has the name of the chosen one.
        chosen: the model that an operator chose instead, with its prices and bounds.
    """
    terms: dict[str, Any] = chosen.terms if chosen else {}
    aliases = (Model(name=alias, asks_for=model.name, **terms) for alias in model.aliases)
    return (Model(name=model.name, **terms), *aliases)


def terms_of(model: Model) -> Terms:
    """Return the terms of a model: from its settings, otherwise from :data:`KNOWN`.

    Raises:
        UsageError: if its bounds are neither set nor known.
    """
    chosen = model.model_dump(include={"dollars_in", "dollars_out", "context", "max_output"})
    known = KNOWN.get(model.asks_for or model.name)
    terms: dict[str, Any] = {
        name: getattr(known, name, None) if value is None else value for name, value in chosen.items()
    }
    if not terms["context"] or not terms["max_output"]:
        raise UsageError(f"nothing is known of the model {model.name!r}: set its context and max_output, in tokens")
    return Terms(**terms)


def check_priced(terms: Iterable[tuple[str, Terms]], budget: Budget) -> None:
    """Check that a budget in dollars can be kept.

    Raises:
        UsageError: if there is one, and a model without a price.
    """
    unknown = [name for name, each in terms if not each.priced]
    if budget.dollars is not None and unknown:
        raise UsageError(f"a budget in dollars needs prices: set dollars_in and dollars_out of {', '.join(unknown)}")


def worst_case(request: dict[str, Any], size: int, terms: Terms) -> Amount:
    """Return the most that a call can cost.

    A token is at least a byte of text, so a prompt of text has no more tokens than its JSON has bytes. Images and audio
    may have more: with them, the prompt may fill the model's context.

    Args:
        request: the checked body.
        size: its bytes.
        terms: the model's prices and bounds.

    Raises:
        ApiError: if more output is asked for than the model gives.
    """
    prompt = min(size + _FRAME_TOKENS, terms.context) if _text_only(request["messages"]) else terms.context
    asked = {name: request[name] for name in _LIMITS if request.get(name) is not None}
    for name, value in asked.items():
        if value > terms.max_output:
            msg = f"{name} is too large: this model supports at most {terms.max_output} completion tokens"
            raise bad_request(msg, name)
    return terms.cost(prompt, (request.get("n") or 1) * max(asked.values(), default=terms.max_output))


def reported(usage: object, terms: Terms) -> Amount | None:
    """Return the cost by the usage that the upstream reported, or None if that is no usage."""
    if not isinstance(usage, dict):
        return None
    counts: list[Any] = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    right = all(type(count) is int and 0 <= count < _MOST_TOKENS for count in counts)
    return terms.cost(*counts) if right else None


def _text_only(messages: list[dict[str, Any]]) -> bool:
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, dict) or "text" not in part or part.get("type") not in ("text", "refusal"):
                return False
        if message.get("audio"):
            return False
    return True
