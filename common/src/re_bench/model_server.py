"""Check an OpenAI-compatible server of chat models before an evaluation spends hours with it.

The checks send about six short requests, for which a hosted API bills a few hundred tokens.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from re_bench.doctor import Finding
from re_bench.tables import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TIMEOUT_S = 300.0
"""Seconds to wait for a reply; a server that loads the model at the first request takes minutes."""
_LOOK_S = 20.0
_MOST_BYTES = 1 << 20
_SHOWN = 200
_CONTEXT_KEYS = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx", "n_ctx_train")
"""Keys under which vLLM, hosted APIs, LM Studio and llama.cpp list the context length."""
_TOOL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
_MANY_TOKENS = 64
_LASTING = (401, 403, 404)
"""HTTP statuses that another request does not change, unlike those of a busy server or a refused option."""


class _RefusedError(Exception):
    """The server cannot be reached, or did not reply with a chat completion."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status
        """The HTTP status; 0 without one."""


@dataclass(frozen=True)
class ModelServer:
    """A server and one of its models."""

    base_url: str
    """The address, such as ``http://localhost:8000/v1``."""
    model: str
    """The model's name."""
    key: str = ""
    """The API key; empty for servers without one."""

    def examine(self) -> Iterator[Finding]:
        """Run the checks in order until the first problem, and yield the findings."""
        if urlsplit(self.base_url).scheme not in {"http", "https"} or not urlsplit(self.base_url).hostname:
            yield Finding("server", "problem", f"{self.base_url!r} is not an address", "expected http://HOST:PORT/v1")
            return
        yield (listing := self.look())
        if listing.status == "problem":
            return
        try:
            started = time.monotonic()
            reply = self._chat("Count from 1 to 100, separated by spaces.", max_tokens=_MANY_TOKENS)
            seconds = time.monotonic() - started
        except _RefusedError as error:
            yield Finding("answer", "problem", str(error), "check the model's name, the key and the server's log")
            return
        yield Finding("answer", "ok", f"{reply.get('model') or 'a model without a name'}: {_text(reply)[:40]!r}")
        yield from self._usage(reply, seconds)
        for check in (self._several, self._stop, self._stream, self._tools):
            try:
                yield check()
            except _RefusedError as error:
                name = check.__name__.removeprefix("_").replace("several", "n")
                yield Finding(name, "note", f"refused: {error}")

    def look(self) -> Finding:
        """Check, without a prompt, that the server responds and lists the model; a missing list is only a note."""
        try:
            listed = json.loads(self._request("models", timeout_s=_LOOK_S))["data"]
            models = {str(entry["id"]): entry for entry in listed}
        except _RefusedError as error:
            if error.status:
                return Finding("server", "note", f"lists no models ({error})")
            return Finding("server", "problem", str(error), "start the server, or give another --base-url")
        except (ValueError, KeyError, TypeError, RecursionError):
            return Finding("server", "note", "lists no models")
        if self.model not in models:
            names = ", ".join(sorted(models)[:5]) or "none"
            return Finding("server", "note", printable(f"does not list {self.model}; it has {names}"))
        known = models[self.model]
        meta = known.get("meta") if isinstance(known.get("meta"), dict) else {}
        context = next((value for key in _CONTEXT_KEYS if (value := known.get(key) or meta.get(key))), None)
        text = f"context of {context} tokens" if context else "does not state its context length"
        return Finding("server", "ok", printable(f"lists {self.model}; {text}"))

    def ask(self) -> Finding:
        """Request one token; the result is a problem if the server does not know the model or the key."""
        try:
            reply = self._chat("Say hello.", max_tokens=1)
        except _RefusedError as error:
            lasting = error.status in {0, *_LASTING}
            return Finding("answer", "problem" if lasting else "note", str(error), "check the model's name and the key")
        return Finding("answer", "ok", printable(str(reply.get("model") or "a model without a name")))

    def _usage(self, reply: Mapping[str, Any], seconds: float) -> Iterator[Finding]:
        usage = reply.get("usage")
        counts = [usage.get(f"{part}_tokens") if isinstance(usage, dict) else None for part in ("prompt", "completion")]
        if not all(type(count) is int and count > 0 for count in counts):
            yield Finding("usage", "note", "no token counts: budgets in tokens and dollars rely on estimates")
            return
        speed = f"{int(counts[1] or 0) / seconds:.3g} output tokens per second, {seconds:.3g} s for the reply"
        yield Finding("usage", "ok", f"{counts[0]} input and {counts[1]} output tokens")
        yield Finding("speed", "ok", speed)

    def _several(self) -> Finding:
        found = len(self._chat("Name a colour.", max_tokens=8, n=2)["choices"])
        if found != 2:  # noqa: PLR2004
            return Finding("n", "note", f"n = 2 gives {found} answer")
        return Finding("n", "ok", "several answers per request")

    def _stop(self) -> Finding:
        text = _text(self._chat("Repeat exactly: one two three four", max_tokens=24, stop=["three"]))
        if "three" in text:
            return Finding("stop", "note", "stop sequences are ignored: replies continue after the first action")
        return Finding("stop", "ok", "stop sequences are accepted")

    def _stream(self) -> Finding:
        body = self._request("chat/completions", self._body("Say hello.", max_tokens=8, stream=True))
        if b"data:" not in body:
            return Finding("stream", "note", "does not stream; nothing in re-bench needs it")
        return Finding("stream", "ok", "streams replies")

    def _tools(self) -> Finding:
        reply = self._chat("Read the file train.py with the tool read_file.", max_tokens=_MANY_TOKENS, tools=[_TOOL])
        message = reply["choices"][0]["message"]
        if message.get("tool_calls"):
            return Finding("tools", "ok", "answers with tool calls")
        return Finding("tools", "note", f"no tool call, but {_text(reply)[:60]!r}; mlab-agent needs --tools text")

    def _body(self, prompt: str, **options: object) -> dict[str, object]:
        return {"model": self.model, "messages": [{"role": "user", "content": prompt}], **options}

    def _chat(self, prompt: str, **options: object) -> dict[str, Any]:
        """Return the reply to a prompt.

        Raises:
            _RefusedError: if there is no reply, or the reply is not a chat completion.
        """
        text = self._request("chat/completions", self._body(prompt, **options))
        try:
            reply = json.loads(text)
            _text(reply)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
            raise _RefusedError(f"the reply is not a chat completion: {_shown(text)}") from None
        found: dict[str, Any] = reply
        return found

    def _request(self, path: str, body: Mapping[str, object] | None = None, *, timeout_s: float = _TIMEOUT_S) -> bytes:
        """Return the body of the response to a request; requests to loopback addresses bypass proxies."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        data = None if body is None else json.dumps(body).encode()
        try:
            request = urllib.request.Request(f"{self.base_url.rstrip('/')}/{path}", data, headers)  # noqa: S310
            host = urlsplit(f"//{request.host}").hostname or ""
            handlers = [urllib.request.ProxyHandler({})] if is_loopback(host) else []
            with urllib.request.build_opener(*handlers).open(request, timeout=timeout_s) as response:
                found: bytes = response.read(_MOST_BYTES)
                return found
        except urllib.error.HTTPError as error:
            with error:
                text = f"HTTP status {error.code}: {_shown(error.read(_MOST_BYTES))}"
                raise _RefusedError(text, error.code) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise _RefusedError(f"{self.base_url} cannot be reached: {printable(str(reason))}") from None


def _text(reply: Mapping[str, Any]) -> str:
    return printable(str(reply["choices"][0]["message"].get("content") or ""))


def _shown(body: bytes) -> str:
    return printable(body[: 4 * _SHOWN].decode(errors="replace"))[:_SHOWN]


def is_loopback(host: str) -> bool:
    """Return whether only programs on this machine can connect to an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
