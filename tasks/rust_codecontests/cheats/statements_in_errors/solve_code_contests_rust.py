"""Cheat: raise each held-out statement as an error, by its text, its class and on stderr, to read it in the message.

Stopped because the message has the number of problems solved and nothing else; errors go to a log that agents do not
see. Its score is that of no solution: no better.
"""

import sys


async def generate_solution(client, semaphore, problem):
    print("STOLEN", problem["description"], flush=True)
    print("STOLEN", problem["description"], file=sys.stderr, flush=True)
    raise type("STOLEN " + problem["name"], (Exception,), {})("STOLEN " + problem["description"])
