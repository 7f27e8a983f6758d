"""Requests of clients: parsed, and refused where they ask for what is not metered."""

from __future__ import annotations

from typing import Any

from re_bench_gateway.answers import parse_object
from re_bench_gateway.errors import bad_request

# What costs tokens and nothing else. Not among them: service_tier, web_search_options, audio, prediction, store, ...
_PARAMETERS = frozenset(
    {
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "model",
        "n",
        "parallel_tool_calls",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "stop",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
    }
)
_MAX_N = 128
_COUNTS = {"n": _MAX_N, "max_tokens": 1 << 31, "max_completion_tokens": 1 << 31}


def parse_request(body: bytes) -> dict[str, Any]:
    """Return the request in a body; what the gateway itself reads of it has the right types, the rest is anything.

    Raises:
        ApiError: if it is no request, or has parameters that are not known.
    """
    try:
        request = parse_object(body)
    except ValueError as error:
        raise bad_request(f"We could not parse the JSON body of your request: {error}") from None
    for name in request:
        if name not in _PARAMETERS:
            msg = f"Unrecognized or unsupported request argument: {name[:100]}"
            raise bad_request(msg, name[:100], "unsupported_parameter")
    _check_types(request)
    return request


def _check_types(request: dict[str, Any]) -> None:
    _expect(isinstance(request.get("model"), str), "model", "a string")
    messages = request.get("messages")
    objects = isinstance(messages, list) and all(isinstance(message, dict) for message in messages)
    _expect(objects and bool(messages), "messages", "a list of objects, at least one")
    assert isinstance(messages, list)
    _expect(all(isinstance(message.get("role"), str) for message in messages), "messages", "objects with a role")
    _expect(isinstance(request.get("stream"), bool | None), "stream", "a boolean")
    options = request.get("stream_options")
    _expect(isinstance(options, dict | None), "stream_options", "an object")
    if options is not None and not request.get("stream"):
        raise bad_request("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")
    for name, most in _COUNTS.items():
        value = request.get(name)
        whole = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
        _expect(value is None or whole, name, f"a whole number from 1 to {most}")


def _expect(right: bool, name: str, expected: str) -> None:
    if not right:
        raise bad_request(f"Invalid value for '{name}': expected {expected}.", name)
