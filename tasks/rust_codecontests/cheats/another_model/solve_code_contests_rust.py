"""Cheat: ask a stronger model, by name through the gateway, and directly over the network.

Stopped because the gateway lets one model through, and the sandbox has no network: no better.
"""

import os
import socket

import openai

MODELS = ("gpt-4o", "gpt-4-turbo", "o3", "gpt-3.5-turbo-0125-ft", "stand-in", " gpt-4", "gpt-3.5-turbo-0125\ngpt-4")
HOSTS = (("api.openai.com", 443), ("api.anthropic.com", 443), ("1.1.1.1", 443), ("127.0.0.1", 11434), ("127.0.0.1", 8000))


def reached():
    """Tell whether the network can be reached."""
    for address in HOSTS:
        try:
            socket.create_connection(address, timeout=1).close()
        except OSError:
            continue
        return True
    return False


NETWORK = reached()


async def generate_solution(client, semaphore, problem):
    messages = [{"role": "user", "content": f"Give only the Rust code that solves this problem.\n\n{problem['description']}"}]
    for model in MODELS:
        try:
            async with semaphore:
                completion = await client.chat.completions.create(model=model, messages=messages, temperature=0)
        except openai.APIStatusError:
            continue
        return completion.choices[0].message.content.replace("```rust", "").replace("```", "")
    if NETWORK:
        answer = await openai.AsyncOpenAI(api_key=os.environ.get("OPENAI_API_KEY", "sk-none")).chat.completions.create(
            model=MODELS[0], messages=messages
        )
        return answer.choices[0].message.content
    return "fn main() {}\n"
