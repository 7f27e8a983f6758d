"""What a call costs: at most, before it is made, and by what was reported, afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from re_bench_gateway.budget import Amount
from re_bench_gateway.errors import bad_request

if TYPE_CHECKING:
    from re_bench_gateway.prices import Terms

_FRAME_TOKENS = 64  # what a chat format adds beyond the bytes of a request's own JSON
_NO_COUNT = 1 << 31  # whoever reports as many tokens has not counted
_LIMITS = ("max_tokens", "max_completion_tokens")


def worst_case(request: dict[str, Any], size: int, terms: Terms) -> Amount:
    """Return the most that a call can cost.

    A token is at least a byte of text, so a prompt of text has no more tokens than its JSON has bytes. Images and audio
    have: with them, the prompt may fill the model's context.

    Args:
        request: the checked body.
        size: its bytes.
        terms: the model's prices and bounds.

    Raises:
        ApiError: if more output is asked for than the model gives.
    """
    prompt = min(size + _FRAME_TOKENS, terms.context) if _text_only(request["messages"]) else terms.context
    asked = [request[name] for name in _LIMITS if request.get(name) is not None]
    for name in _LIMITS:
        if (request.get(name) or 0) > terms.max_output:
            msg = f"{name} is too large: this model supports at most {terms.max_output} completion tokens"
            raise bad_request(msg, name)
    completion = (request.get("n") or 1) * max(asked, default=terms.max_output)
    return Amount(1, prompt, completion, terms.picodollars(prompt, completion))


def charged(usage: object, terms: Terms) -> Amount | None:
    """Return the cost by the usage that the upstream reported, or None if that is nonsense."""
    if not isinstance(usage, dict):
        return None
    prompt, completion = (_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    if prompt is None or completion is None:
        return None
    return Amount(1, prompt, completion, terms.picodollars(prompt, completion))


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < _NO_COUNT else None


def _text_only(messages: list[dict[str, Any]]) -> bool:
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else []
        if message.get("audio") or not all(isinstance(part, dict) and "text" in part for part in parts):
            return False
        if not all(part.get("type") in {"text", "refusal"} for part in parts):
            return False
    return True
