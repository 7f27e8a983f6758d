"""Cheat: put a line before the model's programs that reads a file while they are compiled. It reads the source itself, which
could contain text that is not compared with the model's.

Stopped because a program with a macro that reads files is not the model's, whatever else is in it: no better. The line is
short enough for a template, so that the programs would count otherwise. That the compiler's sandbox shows no other file
is what tests/test_judge_escapes.py tries.
"""

import re

LINE = 'const SOURCE: &str = include_str!("main.rs");\n'
FENCE = re.compile(r"```[^\n]*\n(.*?)```", re.DOTALL)


async def generate_solution(client, semaphore, problem):
    messages = [{"role": "user", "content": f"Write a Rust program that solves this problem.\n\n{problem['description']}"}]
    async with semaphore:
        completion = await client.chat.completions.create(model="gpt-3.5-turbo-0125", messages=messages, max_tokens=1600)
    program = max(FENCE.findall(completion.choices[0].message.content), key=len, default="")
    return LINE + program
