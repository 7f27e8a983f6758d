"""Budgets, keys and concurrency of sessions."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import openai
import pytest
from scripted_upstream import DOLLARS, KEY, MODEL, Upstream, ask, async_client, client_of, completion, settings_for

from re_bench_gateway import Budget, Gateway, serving

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def test_spent_budget_is_insufficient_quota(gateway: Gateway, upstream: Upstream) -> None:
    token = gateway.open_session(Budget(requests=2), name="spender")

    async def spend() -> list[int]:
        async with async_client(gateway, token) as client:
            script = json.dumps([{"body": completion("spent")}])
            for _ in range(2):
                await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": script}])
            asked = len(upstream.asked)
            with pytest.raises(openai.RateLimitError) as caught:
                await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": script}])
            assert (caught.value.code, caught.value.type) == ("insufficient_quota", "insufficient_quota")
            return [asked, len(upstream.asked)]

    before, after = asyncio.run(spend())
    assert before == after
    used = gateway.usage(token)
    assert (used.requests, used.refused, used.remaining.requests) == (2, 1, 0)  # the client does not retry


@pytest.mark.parametrize("budget", [Budget(dollars=10 * DOLLARS + 0.0021), Budget(tokens=10 * 18 + 1000)], ids=str)
def test_concurrent_calls_do_not_overspend(gateway: Gateway, budget: Budget) -> None:
    token = gateway.open_session(budget, name="crowd")

    async def crowd() -> list[Any]:
        async with async_client(gateway, token) as client:
            script = json.dumps([{"body": completion("x"), "sleep": 0.01}])
            calls = [
                client.chat.completions.create(
                    model=MODEL, messages=[{"role": "user", "content": script}], max_tokens=500, stream=number % 2 == 1
                )
                for number in range(50)
            ]
            return await asyncio.gather(*calls, return_exceptions=True)

    results = asyncio.run(crowd())
    used = gateway.usage(token)
    refused = sum(isinstance(result, openai.RateLimitError) for result in results)
    assert used.requests + refused == 50
    assert used.refused == refused
    assert used.requests >= 10  # calls wait for running ones instead of being refused
    assert used.dollars is not None
    assert used.dollars == pytest.approx(used.requests * DOLLARS, abs=1e-12)
    assert used.dollars <= (budget.dollars or 1)
    assert used.prompt_tokens + used.completion_tokens <= (budget.tokens or 1e9)


def test_sessions_share_the_budget_but_not_keys(upstream: Upstream, tmp_path: Path) -> None:
    settings = settings_for(upstream, tmp_path / "log", budget=Budget(requests=2))
    with serving(settings) as gateway:
        first = gateway.open_session(name="first", key="sk-of-the-first-session")
        second = gateway.open_session(Budget(requests=5), name="second")
        for token in (first, second):
            with client_of(gateway, token) as client:
                ask(client, {"body": completion(token[:4])})
        assert [headers["authorization"] for headers, _body in upstream.asked[-2:]] == [
            "Bearer sk-of-the-first-session",
            f"Bearer {KEY}",
        ]
        assert gateway.usage(second).remaining.requests == 0
        with client_of(gateway, second) as client, pytest.raises(openai.RateLimitError):
            ask(client, {"body": completion("no")})
        assert gateway.close_session(first).requests == 1
        with client_of(gateway, first) as client, pytest.raises(openai.AuthenticationError):
            ask(client, {"body": completion("no")})
    text = (tmp_path / "log").read_text()
    assert [json.loads(line)["session"] for line in text.splitlines()] == ["first", "second", "second"]


def test_upstream_concurrency_is_limited(upstream: Upstream, tmp_path: Path) -> None:
    with serving(settings_for(upstream, tmp_path / "log", concurrency=3)) as gateway:

        async def many() -> None:
            async with async_client(gateway) as client:
                script = json.dumps([{"body": completion("y"), "meet": 3, "sleep": 0.03}])
                create = client.chat.completions.create
                calls = [create(model=MODEL, messages=[{"role": "user", "content": script}]) for _ in range(12)]
                await asyncio.gather(*calls)

        upstream.most_running = 0
        asyncio.run(many())
        assert upstream.most_running == 3


def test_secrets_are_not_exposed(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(settings_for(upstream, tmp_path / "log")) as gateway:
        secrets = [KEY, gateway.token]
        with client_of(gateway) as client:
            ask(client, {"body": completion(f"my keys are {secrets}")})
            with pytest.raises(openai.BadRequestError) as caught:
                ask(client, {"status": 400, "body": {"error": {"message": f"{KEY} is wrong"}}})
        process = f"/proc/{gateway.pid}"
        shown = [str(caught.value), repr(settings_for(upstream, tmp_path / "log"))]
        for name in ("cmdline", "environ"):
            with open(f"{process}/{name}") as stream:  # noqa: PTH123
                shown.append(stream.read())
        assert os.stat(tmp_path / "log").st_mode & 0o777 == 0o600  # noqa: PTH116
    shown += [(tmp_path / "log").read_text(), *capfd.readouterr()]
    assert len(shown) == 7
    assert not [text for text in shown for secret in secrets if secret in text]
