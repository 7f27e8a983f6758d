"""What an upstream answers: read and checked, so that whatever it sends, a client gets a completion or an error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from re_bench.data.redaction import redacted_value
from re_bench_gateway.errors import UpstreamError, error_body

if TYPE_CHECKING:
    from collections.abc import Iterable

_ERRORS = range(400, 600)
_BAD_GATEWAY = 502
_MOST_CHOICES = 128
_MOST_TOOL_CALLS = 1024  # of one message


class _Checked(BaseModel):
    """Types that the gateway and clients rely on; what else there is passes."""

    model_config = ConfigDict(strict=True)


class _Function(_Checked):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(_Checked):
    index: Annotated[int, Field(ge=0, lt=_MOST_TOOL_CALLS)] | None = None
    id: str | None = None
    type: str | None = None
    function: _Function | None = None


class _Message(_Checked):
    role: str | None = None
    content: str | list[Any] | None = None
    refusal: str | None = None
    tool_calls: Annotated[list[_ToolCall], Field(max_length=_MOST_TOOL_CALLS)] | None = None
    function_call: _Function | None = None


class _Part(_Checked):
    index: Annotated[int, Field(ge=0, lt=_MOST_CHOICES)] | None = None
    delta: _Message | None = None
    finish_reason: str | None = None


class _Choice(_Part):
    message: _Message


class _Chunk(_Checked):
    choices: Annotated[list[_Part], Field(max_length=_MOST_CHOICES)] | None = None


class _Completion(_Checked):
    choices: Annotated[list[_Choice], Field(max_length=_MOST_CHOICES)]


def parse_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object in ``data``, which can be written as JSON again.

    Raises:
        ValueError: if it is none, is nested more than 200 deep, or has a number that JSON or we do not know.
    """
    value = from_json(data, allow_inf_nan=False)
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - the data are wrong, not the call
    json.dumps(value, allow_nan=False)  # 1e999 is infinite, integers of thousands of digits have no text
    return value


def check_completion(completion: object) -> dict[str, Any]:
    """Return a completion whose parts have the types that the gateway and clients rely on.

    Raises:
        UpstreamError: if it is none.
    """
    checked = _checked(completion, _Completion, "answered with something that is no chat.completion")
    return {**checked, "choices": _usual(checked["choices"])}


def chunk_in(data: bytes, secrets: Iterable[str]) -> dict[str, Any]:
    """Return the chunk in an event of a stream.

    Raises:
        UpstreamError: if it is none, or tells of an error.
    """
    try:
        chunk = parse_object(data)
    except ValueError:
        raise unusable("sent an event that is no JSON object") from None
    if chunk.get("error"):
        raise UpstreamError(_BAD_GATEWAY, told_error(chunk, _BAD_GATEWAY, secrets))
    checked = _checked(chunk, _Chunk, "sent an event that is no chat.completion.chunk")
    return {**checked, "choices": _usual(checked.get("choices") or [])}  # which clients rely on


def _usual(choices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return choices with an index each, and without logprobs that are none: servers differ in these."""
    return [
        {
            **choice,
            "index": number if choice.get("index") is None else choice["index"],
            **({} if isinstance(choice.get("logprobs"), dict) else dict.fromkeys(choice.keys() & {"logprobs"})),
        }
        for number, choice in enumerate(choices)
    ]


def unusable(what: str) -> UpstreamError:
    """Return the error of an upstream that did something else than to answer."""
    return UpstreamError(_BAD_GATEWAY, error_body(f"the model's server {what}", "server_error", code="upstream_failed"))


def error_status(status: int, refusal: dict[str, Any] | None) -> int:
    """Return the status to pass on: the server's own, or of an error that came with 200 the one that it names."""
    error = (refusal or {}).get("error")
    named = error.get("code") if isinstance(error, dict) else None
    return next((code for code in (status, named) if type(code) is int and code in _ERRORS), _BAD_GATEWAY)


def told_error(refusal: dict[str, Any] | None, status: int, secrets: Iterable[str]) -> dict[str, Any]:
    """Return a server's own error without keys, in OpenAI's shape; what it adds stays."""
    error = redacted_value((refusal or {}).get("error"), secrets, similar=True)
    body = error_body(f"the model's server answered with status {status}", "server_error", code="upstream_failed")
    if isinstance(error, str):
        body["error"] |= {"message": error}
    elif isinstance(error, dict):
        body["error"] |= {"param": None, "code": None} | {
            name: value for name, value in error.items() if name not in body["error"] or isinstance(value, str | None)
        }
        body["error"]["message"] = body["error"]["message"] or "the model's server gave no message"
    return body


def _checked(value: object, kind: type[_Checked], otherwise: str) -> dict[str, Any]:
    try:
        kind.model_validate(value)
    except ValidationError:
        raise unusable(otherwise) from None
    assert isinstance(value, dict)
    return value
