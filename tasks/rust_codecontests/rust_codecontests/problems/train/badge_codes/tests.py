# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of badge_codes: form and check letters of codes."""

from __future__ import annotations

import random
import re
import string
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNS = string.digits + string.ascii_uppercase
PUBLIC: tuple[str, ...] = (
    "6\n12F\n12A\n1-2-F\nAB-7\n-1F\nC-0-R1-PZ\n",
    "5\n5F\nQ\n3--3J\n7-\nZZ\n",
)


def _case(codes: list[str]) -> str:
    """Write one input."""
    return "\n".join([str(len(codes)), *codes]) + "\n"


def _check(body: str) -> str:
    """Return the body with its right check letter behind it."""
    plain = body.replace("-", "")
    return body + chr(65 + sum((i + 1) * SIGNS.index(c) for i, c in enumerate(plain)) % 26)


def private() -> Iterator[str]:
    """Yield hand-made corner cases."""
    rng = random.Random(8)
    yield _case(["A"])
    yield _case(["-", "--", "A-", "-A", "0", "00", "0-0"])
    yield _case(["0A", "0-A", "00000A", "0B", "A-A", "AA", "AK"])
    yield _case(["A--B", "A-B-", "1-1-1-1", "1-1-1-A", "--1A", "1A--"])
    yield _case([_check(c) for c in SIGNS] + [_check(c + "-" + c) for c in SIGNS])
    yield _case([_check("Z" * 249999)])
    yield _case([_check("Z-" * 120000 + "9")])
    yield _case(["Z9-" * 80000 + "Z"])
    yield _case(["-" * 200000])
    yield _case([_check("".join(rng.choices(SIGNS, k=rng.randint(1, 40)))) for _ in range(5000)])
    yield _case([_check("-".join(rng.choices(SIGNS, k=20000))) for _ in range(6)])


def generated(rng: random.Random) -> Iterator[str]:
    """Yield random inputs of growing size."""
    for n, longest in ((3, 4), (10, 6), (50, 10), (300, 30), (2000, 50), (5000, 40), (20, 10000)):
        yield _case([_code(rng, longest) for _ in range(n)])


def small(rng: random.Random) -> str:
    """Return one tiny random input."""
    return _case([_code(rng, 5) for _ in range(3)])


def _code(rng: random.Random, longest: int) -> str:
    """Return one random code, of good form or not, with a right check letter or not."""
    body = "".join(rng.choices(SIGNS, k=rng.randint(1, longest)))
    if rng.randrange(3):
        cut = rng.randint(0, len(body))
        body = body[:cut] + rng.choice(["-", "-", "-", "--"]) + body[cut:]
    return _check(body) if rng.randrange(2) else body + rng.choice(["A", "B", "7", "-", "K"])


def solve(text: str) -> str:
    """Match the form and compute the remainder."""
    out = []
    for code in text.split()[1:]:
        body = code[:-1].replace("-", "")
        if re.fullmatch(r"[A-Z0-9]+(-[A-Z0-9]+)*", code) is None or not code[-1].isalpha() or not body:
            out.append("form")
            continue
        right = chr(65 + sum(i * int(c, 36) for i, c in enumerate(body, 1)) % 26)
        out.append("ok" if right == code[-1] else right)
    return "\n".join(out) + "\n"


def brute(text: str) -> str:
    """Look at the groups between hyphens and count the check letter round and round the alphabet."""
    out = []
    for code in text.split()[1:]:
        groups = code.split("-")
        if "" in groups or code[-1] in string.digits or groups in [[c] for c in SIGNS]:
            out.append("form")
            continue
        letters = list(string.ascii_uppercase)
        for number, sign in enumerate("".join(groups)[:-1], 1):
            for _ in range(SIGNS.index(sign)):
                turn = number % 26
                letters = letters[turn:] + letters[:turn]
        out.append("ok" if letters[0] == code[-1] else letters[0])
    return "\n".join(out) + "\n"
