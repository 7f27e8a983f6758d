"""Taking keys out of an answer that is passed on while it arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from re_bench.data.redaction import forms, redacted, redacted_value
from re_bench_gateway.streaming import SAID_ONCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class StreamRedaction:
    """Redacts chunks of a stream, also a secret that is cut across several; what is said once is not cut.

    Chunks are held back for as long as one of their texts ends with the beginning of a secret, and no more of them than
    a secret has characters, so that one text does not hold up all others.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(secret for secret in secrets if forms(secret))
        self._most = max(map(len, self._secrets), default=0)
        self._held: list[dict[str, Any]] = []
        self._ready: list[dict[str, Any]] = []

    def add(self, chunk: dict[str, Any]) -> None:
        """Take in the next chunk."""
        self._held.append(redacted_value(chunk, self._secrets))
        texts: dict[tuple[object, ...], list[tuple[dict[str, Any], str]]] = {}
        for held in self._held:
            for path, place in _strings(held.get("choices"), ()):
                texts.setdefault(path, []).append(place)
        unsure = [self._redact(places) for places in texts.values()]
        if not any(unsure) or len(self._held) > self._most:
            self._ready += self._held
            self._held = []

    def take(self) -> list[dict[str, Any]]:
        """Return the chunks that can be passed on now."""
        ready, self._ready = self._ready, []
        return ready

    def rest(self) -> list[dict[str, Any]]:
        """Return all that is left, at the end of the stream."""
        rest, self._ready, self._held = self._ready + self._held, [], []
        return rest

    def _redact(self, places: list[tuple[dict[str, Any], str]]) -> bool:
        """Redact a text that lies in several places, and tell whether a secret may begin at its end."""
        text = "".join(container[name] for container, name in places)
        clean = redacted(text, self._secrets)
        if clean != text:
            for container, name in places:
                container[name], clean = clean, ""
            text = "".join(container[name] for container, name in places)
        return any(
            text.endswith(secret[:length])
            for secret in self._secrets
            for length in range(1, min(len(secret) - 1, len(text)) + 1)
        )


def _strings(value: Any, path: tuple[object, ...]) -> Iterator[tuple[tuple[object, ...], tuple[dict[str, Any], str]]]:
    """Yield where strings are, and as what path clients know them, in which ``index`` names an entry of a list."""
    if isinstance(value, dict):
        for name, part in value.items():
            if isinstance(part, str):
                if name not in SAID_ONCE:
                    yield (*path, name), (value, name)
            else:
                yield from _strings(part, (*path, name))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            label = part.get("index", number) if isinstance(part, dict) else number
            yield from _strings(part, (*path, str(label)))
