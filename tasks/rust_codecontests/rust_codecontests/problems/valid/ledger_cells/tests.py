# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of ledger_cells: formulas that refer to each other."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MOD = 998244353
PUBLIC: tuple[str, ...] = (
    "5\ntotal=rent+120-gift\nrent=500\ngift=-rent+20\na=b\nb=3-a\n",
    "4\nx=7-5\ny=x+z\nx=9-y\ny=4+q\n",
)


def _name(number: int) -> str:
    """Return a name for a number; different numbers get different names."""
    letters = ""
    while number or not letters:
        letters += chr(97 + number % 26)
        number //= 26
    return letters


def _case(entries: list[str]) -> str:
    """Write one input."""
    return "\n".join([str(len(entries)), *entries]) + "\n"


def private() -> Iterator[str]:
    """Yield hand-made corner cases."""
    rng = random.Random(7)
    yield _case(["a=0"])
    yield _case(["a=a"])
    yield _case(["a=-b", "b=1"])
    yield _case(["a=b-b", "b=c", "c=b+1", "d=a+c", "e=f-5", "g=e+e"])
    yield _case(["a=a+1", "b=a", "a=5", "c=c", "c=b-6"])
    yield _case(["b=1", "a=2", "b=a", "a=b", "b=7"])
    yield _case(["zz=z", "z=zzz+998244353", "y=1000000000-z", "x=-1000000000-1000000000-1000000000"])
    yield _case(["b=x", "c=x", "d=b+c", "x=y", "y=x", "e=d", "f=e+1", "g=3"])
    doubling = [f"{_name(i)}={_name(i - 1)}+{_name(i - 1)}" for i in range(1, 3000)]
    yield _case(["a=1", *doubling])
    yield _case(["-".join(["m=1000000000", *["k"] * 100000]), "k=1000000000"])
    yield _case([f"{_name(i)}={_name(i + 1)}+{i}" for i in range(10000)])
    yield _case([f"{_name(i)}={_name(i + 1)}-1" for i in range(9999)] + [f"{_name(9999)}={_name(5000)}"])
    order = list(range(1, 10000))
    rng.shuffle(order)
    yield _case([f"{_name(i)}={_name(i // 2)}-{_name(i - 1)}+{i}" for i in order])
    yield _case([f"same={i}-other" for i in range(9000)] + [f"other=same+{i}" for i in range(999)] + ["other=8"])


def generated(rng: random.Random) -> Iterator[str]:
    """Yield random inputs of growing size."""
    for count, names in ((3, 3), (10, 8), (60, 50), (400, 500), (3000, 4000), (9000, 12000)):
        yield _random(rng, count, names, 3)


def small(rng: random.Random) -> str:
    """Return one tiny random input."""
    return _random(rng, rng.randint(1, 6), 5, rng.randint(1, 3))


def _random(rng: random.Random, count: int, names: int, terms: int) -> str:
    """Write random entries that mostly refer to larger numbers."""
    entries = []
    for _ in range(count):
        number = rng.randrange(names)
        formula = rng.choice(["", "", "-"])
        for i in range(rng.randint(1, terms)):
            other = rng.randint(number + 1, names + 1) if rng.randrange(count) else rng.randrange(names)
            formula += rng.choice("+-") if i else ""
            formula += (
                _name(other) if rng.randrange(3) else str(rng.choice([rng.randrange(100), rng.randint(0, 10**9)]))
            )
        entries.append(f"{_name(number)}={formula}")
    return _case(entries)


def solve(text: str) -> str:
    """Evaluate names as soon as all that they use is known."""
    formulas: dict[str, list[tuple[str, str]]] = {}
    for entry in text.split()[1:]:
        name, formula = entry.split("=")
        formulas[name] = re.findall(r"([+-]?)(\w+)", formula)
    users: dict[str, list[str]] = {name: [] for name in formulas}
    missing = dict.fromkeys(formulas, 0)
    for name, terms in formulas.items():
        for _, term in terms:
            if term in formulas:
                users[term].append(name)
                missing[name] += 1
    values: dict[str, int] = {}
    ready = [name for name, count in missing.items() if not count]
    while ready:
        name = ready.pop()
        value = 0
        for sign, term in formulas[name]:
            number = int(term) if term.isdigit() else values.get(term, 0)
            value += -number if sign == "-" else number
        values[name] = value % MOD
        for user in users[name]:
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    return "".join(f"{name} {values.get(name, 'loop')}\n" for name in formulas)


def brute(text: str) -> str:
    """Put the formulas into each other until only numbers are left, or too often."""
    entries = [entry.split("=") for entry in text.split()[1:]]
    formulas = {name: re.sub(r"([a-z]+)", r"(\1)", formula) for name, formula in entries}
    out = []
    for name in dict.fromkeys(name for name, _ in entries):
        formula = formulas[name]
        for _ in range(len(formulas)):
            formula = re.sub(r"[a-z]+", lambda m: formulas.get(m[0], "0"), formula)
        out.append(f"{name} loop" if re.search("[a-z]", formula) else f"{name} {_sum(formula) % MOD}")
    return "\n".join(out) + "\n"


def _sum(formula: str) -> int:
    """Add up numbers with signs and brackets."""
    total, sign, signs = 0, 1, [1]
    for word in re.findall(r"\d+|.", formula):
        if word.isdigit():
            total += sign * signs[-1] * int(word)
        elif word == "(":
            signs.append(sign * signs[-1])
            sign = 1
        elif word == ")":
            signs.pop()
        else:
            sign = 1 if word == "+" else -1
    return total
