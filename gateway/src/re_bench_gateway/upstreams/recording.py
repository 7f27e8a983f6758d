"""The log of an earlier gateway, replayed."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from re_bench.errors import UsageError
from re_bench_gateway.errors import UpstreamError, error_body
from re_bench_gateway.log import read_calls

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from re_bench_gateway.settings import Recording
    from re_bench_gateway.upstreams import Answer, Asked

__all__ = ["RecordingUpstream"]

_DELIVERY = ("stream", "stream_options", "user", "safety_identifier", "prompt_cache_key")
_REPLAYED = frozenset({"answered", "disconnected", "upstream_error"})
_BAD_REQUEST = 400


class RecordingUpstream:
    """Answers a request as the log has it: the k-th time it is asked, with its k-th answer there.

    A request is recognised by its content, however it is delivered: a recorded stream answers a request without one.

    Raises:
        UsageError: if the log cannot be read or has no calls.
    """

    def __init__(self, settings: Recording) -> None:
        self._answers: dict[str, list[dict[str, Any]]] = {}
        self._asked: Counter[str] = Counter()
        for entry in read_calls(settings.path):
            if entry.get("ending") in _REPLAYED and isinstance(entry.get("request"), dict):
                content = content_of({**entry["request"], "model": entry.get("asked_for")})
                self._answers.setdefault(content, []).append(entry)
        if not self._answers:
            raise UsageError(f"the recording has no calls: {settings.path}")

    @asynccontextmanager
    async def asking(self, request: dict[str, Any], asked: Asked) -> AsyncIterator[Answer]:
        """Look the answer up."""
        content = content_of(request)
        number = self._asked[content]
        self._asked[content] += 1
        answers = self._answers.get(content, [])
        if number >= len(answers):
            times = f"it was recorded {len(answers)} times, and this is time {number + 1}" if answers else "it was not"
            msg = f"the recording has no answer to this request: {times}; record it anew"
            raise UpstreamError(_BAD_REQUEST, error_body(msg, "invalid_request_error", code="not_recorded"))
        entry = answers[number]
        if "response" not in entry:
            said = entry.get("error") or {
                "status": 500,
                **error_body("it was cut off in the recording", "server_error"),
            }
            raise UpstreamError(said["status"], {"error": said["error"]})
        asked.begun = True
        yield entry["response"]

    async def close(self) -> None:
        """Do nothing."""


def content_of(request: dict[str, Any]) -> str:
    """Return a digest of all of a request that its answer depends on."""
    content = {key: value for key, value in request.items() if key not in _DELIVERY}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()
