"""One call, and the block of code in the answer."""

import re


async def generate_solution(client, semaphore, problem):
    request = f"Write a correct program in Rust. Answer with one block of code.\n\n{problem['description']}"
    async with semaphore:
        completion = await client.chat.completions.create(
            model="gpt-3.5-turbo-0125", messages=[{"role": "user", "content": request}], max_tokens=1600
        )
    text = completion.choices[0].message.content
    found = re.search(r"```\w*\n(.*?)```", text, re.DOTALL)
    return found[1] if found else text
