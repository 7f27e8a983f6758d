"""Streams of completions: server-sent events, and a completion as the chunks that it is streamed in, both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

DONE = b"[DONE]"
_MAX_EVENT = 16 << 20
_PIECE = 64  # characters of text in a chunk
_TOP = ("id", "created", "model", "system_fingerprint", "service_tier")
SAID_ONCE = frozenset({"role", "id", "type", "name", "index", "finish_reason"})
"""What is whole wherever it stands in a stream, whatever else is said in pieces."""


class EventReader:
    """The data of the events in a stream of bytes that arrives in pieces cut anywhere."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """Take in the next piece and return the data of all events that are whole now.

        Raises:
            ValueError: if an event is too long to be one.
        """
        text = self._rest + piece
        # A piece may end within \r\n: the \r waits for what follows.
        held = b"\r" if text.endswith(b"\r") else b""
        text = text.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text
        *events, rest = text.split(b"\n\n")
        self._rest = rest + held
        if len(self._rest) > _MAX_EVENT:
            raise ValueError("an event of the stream is too long")
        return [data for data in map(_data, events) if data]


def event(data: bytes) -> bytes:
    """Return an event with the data, which is one line."""
    return b"data: %b\n\n" % data


def _data(lines: bytes) -> bytes:
    found = [line[5:].removeprefix(b" ") for line in lines.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(found)


class Assembled:
    """A completion put together again from its chunks."""

    def __init__(self) -> None:
        self._top: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self.usage: Any = None
        """What the upstream reported, if it did."""

    def add(self, chunk: dict[str, Any]) -> None:
        """Take in the next chunk, which :mod:`~re_bench_gateway.answers` has checked."""
        self._top.update({key: chunk[key] for key in _TOP if chunk.get(key) is not None})
        if chunk.get("usage") is not None:
            self.usage = chunk["usage"]
        for part in chunk.get("choices") or ():
            index = part.get("index", 0)
            choice = self._choices.setdefault(index, {"index": index, "message": {}, "finish_reason": None})
            _merge_message(choice["message"], part.get("delta") or {})
            if part.get("finish_reason") is not None:
                choice["finish_reason"] = part["finish_reason"]
            if part.get("logprobs") is not None:
                _merge(choice.setdefault("logprobs", {}), part["logprobs"])

    def completion(self) -> dict[str, Any]:
        """Return the completion as far as it has come."""
        choices = [self._choices[index] for index in sorted(self._choices)]
        for choice in choices:
            choice["message"].setdefault("content", None)
        whole = {**self._top, "object": "chat.completion", "choices": choices}
        return whole if self.usage is None else {**whole, "usage": self.usage}


def _merge_message(known: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add a delta to a message. Its calls of tools alone have been checked to be what they are called."""
    if delta.get("tool_calls") is not None:
        known["tool_calls"] = known.get("tool_calls") or []
        _merge_calls(known["tool_calls"], delta["tool_calls"])
    _merge(known, {key: value for key, value in delta.items() if key != "tool_calls"})


def _merge(known: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add a delta to a part of a message."""
    for key, value in delta.items():
        before = known.get(key)
        if isinstance(value, str) and key not in SAID_ONCE and isinstance(before, str | None):
            known[key] = (before or "") + value
        elif isinstance(value, dict) and isinstance(before, dict | None):
            known[key] = {} if before is None else before
            _merge(known[key], value)
        elif isinstance(value, list) and isinstance(before, list):
            before.extend(value)
        elif value is not None or key not in known:
            known[key] = list(value) if isinstance(value, list) else value


def _merge_calls(known: list[dict[str, Any]], parts: list[dict[str, Any]]) -> None:
    for part in parts:
        index = len(known) if part.get("index") is None else part["index"]
        known.extend({} for _ in range(index + 1 - len(known)))
        _merge(known[index], {key: value for key, value in part.items() if key != "index"})


def to_chunks(completion: dict[str, Any], *, include_usage: bool) -> Iterator[dict[str, Any]]:
    """Cut a completion into the chunks that it would have been streamed in."""
    top = {key: completion[key] for key in _TOP if key in completion} | {"object": "chat.completion.chunk"}
    if include_usage:
        top["usage"] = None
    for choice in completion["choices"]:
        for delta in _deltas(choice.get("message") or {}):
            yield {**top, "choices": [_part(choice, delta)]}
        end = _part(choice, {})
        end["finish_reason"] = choice.get("finish_reason")
        if choice.get("logprobs") is not None:
            end["logprobs"] = choice["logprobs"]
        yield {**top, "choices": [end]}
    if include_usage:
        yield {**top, "choices": [], "usage": completion.get("usage")}


def _part(choice: dict[str, Any], delta: dict[str, Any]) -> dict[str, Any]:
    return {"index": choice.get("index", 0), "delta": delta, "finish_reason": None}


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    text = message.get("content")
    in_pieces = isinstance(text, str) and text != ""
    first = {
        key: value for key, value in message.items() if key != "tool_calls" and not (in_pieces and key == "content")
    }
    yield first
    if isinstance(text, str) and in_pieces:
        for start in range(0, len(text), _PIECE):
            yield {"content": text[start : start + _PIECE]}
    if message.get("tool_calls"):
        yield {"tool_calls": [{"index": index, **call} for index, call in enumerate(message["tool_calls"])]}
