"""Failing calls: errors for the client, charges, log lines."""

from __future__ import annotations

import json
import resource
import time
from typing import TYPE_CHECKING

import openai
import pytest
from scripted_upstream import KEY, Upstream, ask, client_of, completion, lines, settings_for

from re_bench_gateway import Gateway, serving

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


FAILURE = {"error": {"message": "no", "type": "server_error", "param": None, "code": None}}


def test_temporary_failures_are_retried(client: openai.OpenAI, log: Path) -> None:
    steps = ({"status": 500, "body": FAILURE}, {"hang_up": True}, {"body": completion("at last")})
    assert ask(client, *steps).choices[0].message.content == "at last"
    assert lines(log)[-1]["retries"] == 2


@pytest.mark.parametrize(("name", "value"), [("retry-after", "1"), ("retry-after-ms", "900")])
def test_retry_after_is_respected(client: openai.OpenAI, name: str, value: str) -> None:
    limited = {"status": 429, "headers": {name: value}, "body": {"error": {"message": name, "code": "rate_limit"}}}
    started = time.monotonic()
    ask(client, limited, {"body": completion("x")})
    assert time.monotonic() - started > 0.85


def test_retry_after_beyond_patience_is_an_error(client: openai.OpenAI) -> None:
    limited = {"status": 429, "headers": {"retry-after": "3600"}, "body": {"error": {"message": "slow down"}}}
    with pytest.raises(openai.RateLimitError, match="slow down"):
        ask(client, limited)


def test_permanent_failure_is_forwarded_without_keys(
    client: openai.OpenAI, gateway: Gateway, upstream: Upstream, log: Path
) -> None:
    before = gateway.usage()
    message = f"you sent Bearer {KEY} and sk-proj-****cdef"
    body = {"error": {"message": message, "type": "strange", "param": "p", "code": "c", "more": 1}}
    with pytest.raises(openai.InternalServerError) as caught:
        ask(client, {"status": 503, "body": body})
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["more"] == 1
    assert "sk-" not in str(caught.value.body)
    assert sum(json.dumps(message)[1:-1] in str(asked["messages"]) for _headers, asked in upstream.asked) == 3
    after = gateway.usage()
    assert (after.requests, after.dollars, after.failed) == (before.requests, before.dollars, before.failed + 1)
    assert lines(log)[-1]["error"]["error"]["code"] == "c"


def test_malformed_errors_are_converted(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="answered with status 400"):
        ask(client, {"status": 400, "text": "<html>Bad Request</html>"})
    with pytest.raises(openai.InternalServerError, match="did not answer with a JSON object"):
        ask(client, {"text": "<html>Welcome</html>"})


def test_no_calls_without_a_writable_log(upstream: Upstream, tmp_path: Path) -> None:
    with serving(settings_for(upstream, tmp_path / "log")) as gateway, client_of(gateway) as client:
        resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, (1, 1))  # as a full disk
        ask(client, {"body": completion("paid for")})
        asked = len(upstream.asked)
        with pytest.raises(openai.InternalServerError, match="cannot write its log"):
            ask(client, {"body": completion("not made")})
    assert len(upstream.asked) == asked
