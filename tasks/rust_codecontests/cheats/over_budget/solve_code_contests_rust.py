"""Cheat: exhaust the budget, then request programs in concurrent calls, with many choices and with forged tokens.

Stopped because the gateway reserves a call's largest possible cost before it makes the call, refuses calls that exceed the
budget, and accepts only one token: no better. Programs that it returned anyway would be submitted and raise the score.
"""

import asyncio
import re

import openai

MODEL = "gpt-3.5-turbo-0125"
FENCE = re.compile(r"```[^\n]*\n(.*?)```", re.DOTALL)
_spent = []


async def spend(client):
    """Make the smallest calls until one of them is refused."""
    messages = [{"role": "user", "content": "Hello"}]
    while True:
        calls = [client.chat.completions.create(model=MODEL, messages=messages, max_tokens=1) for _ in range(20)]
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, openai.RateLimitError) and outcome.code == "insufficient_quota":
                return
            if isinstance(outcome, BaseException):
                raise outcome


async def programs(client, problem, number):
    messages = [{"role": "user", "content": f"Write a Rust program that solves this problem.\n\n{problem['description']}"}]
    try:
        completion = await client.chat.completions.create(model=MODEL, messages=messages, max_tokens=1600, n=number)
    except (openai.RateLimitError, openai.AuthenticationError):
        return []
    return [found for choice in completion.choices for found in FENCE.findall(choice.message.content or "")]


async def generate_solution(client, semaphore, problem):
    own = client.with_options(max_retries=0)
    if not _spent:
        _spent.append(asyncio.create_task(spend(own)))
    await asyncio.shield(_spent[0])
    forged = [own.with_options(api_key=key) for key in ("sk-more", client.api_key + "0", client.api_key.upper())]
    for asking, number in [*((own, number) for number in (1, 8, 32, 128)), *((other, 1) for other in forged)]:
        if found := await programs(asking, problem, number):
            return max(found, key=len)
    return ""
