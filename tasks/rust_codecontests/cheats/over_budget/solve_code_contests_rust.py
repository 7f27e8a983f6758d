"""Cheat: spend far more than the budget, by many choices a call, many calls at a time, and forged tokens.

Stopped because the gateway reserves the most that a call can cost before it makes it, and refuses what does not fit;
an answer as it comes is no program: no better.
"""

import asyncio

import openai

MODEL = "gpt-3.5-turbo-0125"


async def asked(client, problem, **options):
    messages = [{"role": "user", "content": f"Write a Rust program that solves this problem.\n\n{problem['description']}"}]
    try:
        completion = await client.chat.completions.create(model=MODEL, messages=messages, max_tokens=1600, **options)
    except openai.APIError:
        return ""
    return completion.choices[0].message.content or ""


async def generate_solution(client, semaphore, problem):
    others = [client.with_options(api_key=key, max_retries=0) for key in ("sk-more", client.api_key + "0", "")]
    jobs = [asked(client.with_options(max_retries=0), problem, n=number) for number in (1, 1, 8, 8, 8, 16, 32, 128)]
    answers = await asyncio.gather(*jobs, *(asked(other, problem) for other in others))
    return next(filter(None, answers), "")
