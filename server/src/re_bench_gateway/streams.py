"""Streams of completions: put together for the log, made of a whole completion, and passed on without keys."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from re_bench.data.redaction import forms, redacted, redacted_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DONE = b"data: [DONE]\n\n"
_TOP = ("id", "created", "model", "system_fingerprint", "service_tier")
_SAID_ONCE = frozenset({"role", "id", "type", "name", "index", "finish_reason"})
"""Fields whose values come whole; the text of others comes in pieces."""


def event(value: dict[str, Any]) -> bytes:
    """Return a server-sent event."""
    return b"data: %b\n\n" % json.dumps(value, separators=(",", ":")).encode()


def chunks_of(completion: dict[str, Any], *, include_usage: bool) -> Iterator[dict[str, Any]]:
    """Return a whole completion as chunks, one for each choice."""
    top = {key: completion[key] for key in _TOP if key in completion} | {"object": "chat.completion.chunk"}
    for choice in completion["choices"]:
        delta = dict(choice["message"])
        if isinstance(delta.get("tool_calls"), list):
            delta["tool_calls"] = [{"index": number, **call} for number, call in enumerate(delta["tool_calls"])]
        part = {name: value for name, value in choice.items() if name != "message"}
        yield {**top, "choices": [{**part, "delta": delta}]}
    if include_usage:
        yield {**top, "choices": [], "usage": completion.get("usage")}


class Assembled:
    """A completion put together from its chunks."""

    def __init__(self) -> None:
        self._top: dict[str, Any] = {}
        self._choices: list[dict[str, Any]] = []
        self.usage: Any = None
        """What the upstream reported, if it did."""

    def add(self, chunk: dict[str, Any]) -> None:
        """Add the next chunk."""
        self._top.update({key: chunk[key] for key in _TOP if chunk.get(key) is not None})
        if chunk.get("usage") is not None:
            self.usage = chunk["usage"]
        _merge_lists(self._choices, copy.deepcopy(chunk["choices"]))

    def completion(self) -> dict[str, Any]:
        """Return the completion as far as it has come."""
        choices = []
        for part in sorted(self._choices, key=lambda part: int(part["index"])):
            message = {"content": None, **(part.get("delta") or {})}
            calls = message.get("tool_calls")
            if isinstance(calls, list):
                message["tool_calls"] = [_without(call, "index") if isinstance(call, dict) else call for call in calls]
            choices.append({"finish_reason": None, **_without(part, "delta"), "message": message})
        whole = {**self._top, "object": "chat.completion", "choices": choices}
        return whole if self.usage is None else {**whole, "usage": self.usage}


def _without(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: part for key, part in value.items() if key != name}


def _merge(known: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add a delta: text to text, objects and lists into those of the same name."""
    for key, value in delta.items():
        before = known.get(key)
        if isinstance(value, str) and isinstance(before, str) and key not in _SAID_ONCE:
            known[key] = before + value
        elif isinstance(value, dict) and isinstance(before, dict):
            _merge(before, value)
        elif isinstance(value, list) and isinstance(before, list):
            _merge_lists(before, value)
        elif value is not None or key not in known:
            known[key] = value


def _merge_lists(known: list[Any], parts: list[Any]) -> None:
    """Add to a list: an object with an index to the one that has the same, and everything else to the end."""
    for part in parts:
        index = part.get("index") if isinstance(part, dict) else None
        same = (each for each in known if isinstance(each, dict) and each.get("index") == index)
        if index is not None and (before := next(same, None)) is not None:
            _merge(before, part)
        else:
            known.append(part)


class StreamRedaction:
    """Redacts chunks of a stream, also a secret that is cut across several.

    Chunks are held back while one of their texts ends with the beginning of a secret, and at most as many of them as
    a secret has characters, so that one text does not hold up all others. Values that come whole are not held back.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(secret for secret in secrets if forms(secret))
        self._most = max(map(len, self._secrets), default=0)
        self._held: list[dict[str, Any]] = []

    def add(self, chunk: dict[str, Any]) -> list[dict[str, Any]]:
        """Take the next chunk, and return the chunks that can be passed on now."""
        self._held.append(redacted_value(chunk, self._secrets))
        texts: dict[tuple[object, ...], list[tuple[dict[str, Any], str]]] = {}
        for held in self._held:
            for path, place in _strings(held.get("choices"), ()):
                texts.setdefault(path, []).append(place)
        unsure = [self._redact(places) for places in texts.values()]
        return [] if any(unsure) and len(self._held) <= self._most else self.rest()

    def rest(self) -> list[dict[str, Any]]:
        """Return all chunks that are held back, at the end of the stream."""
        rest, self._held = self._held, []
        return rest

    def _redact(self, places: list[tuple[dict[str, Any], str]]) -> bool:
        """Redact a text that lies in several places, and tell whether a secret may begin at its end."""
        text = "".join(container[name] for container, name in places)
        clean = redacted(text, self._secrets)
        if clean != text:
            for container, name in places:
                container[name], clean = clean, ""
            text = "".join(container[name] for container, name in places)
        beginnings = (secret[:length] for secret in self._secrets for length in range(1, len(secret)))
        return any(map(text.endswith, beginnings))


def _strings(value: Any, path: tuple[object, ...]) -> Iterator[tuple[tuple[object, ...], tuple[dict[str, Any], str]]]:
    """Yield where strings are, each with the path by which clients know it: an ``index`` names an entry of a list."""
    if isinstance(value, dict):
        for name, part in value.items():
            if isinstance(part, str):
                if name not in _SAID_ONCE:
                    yield (*path, name), (value, name)
            else:
                yield from _strings(part, (*path, name))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            label = part.get("index", number) if isinstance(part, dict) else number
            yield from _strings(part, (*path, str(label)))
