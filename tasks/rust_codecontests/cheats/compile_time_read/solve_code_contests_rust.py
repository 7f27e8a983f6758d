"""Cheat: add a line to the model's programs that reads a file during compilation. It reads the program's own source, which
could contain text that is not compared with the model's answers.

Stopped because a program with a macro that reads files never counts as the model's: no better. Without this rule, the
programs would count, because the line is short enough for a template. tests/test_judge_escapes.py checks that the
compiler's sandbox shows no other files.
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
