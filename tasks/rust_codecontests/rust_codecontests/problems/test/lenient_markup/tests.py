# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of lenient_markup: tags with forced and stray closings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "<a>one<b>two<c/></a></b> three\n",
    "<p>x > y\n<q><p></q> a/b </p>\n</p>\n<r>\n",
)


def private() -> Iterator[str]:
    """Yield hand-made corner cases."""
    yield "</a>\n"
    yield "<a/>\n"
    yield "<a>\n"
    yield "no <b/> / > </b> tags <b> 1/2 > 0\n"
    yield "<a><a><a></a></a></a></a>\n"
    yield "<a><b><a><b></a></b></a></b>\n"
    yield "<ab><a></ab></a><aba/></b>\n<ab>\n\n</aba></ab>\n"
    yield "<x><y><x/></x></y>\n"
    yield "<x><y>\n</y>\n<z><z/></x>>></z>/<w>\n"
    yield "<a>" * 36000 + "</b>" * 36000 + "\n"
    yield "<a>" * 40000 + "</a>" * 39999 + "\n"
    yield "<root>" + "<b>" * 40000 + "</b></root></root>" + "\n<b>" * 1000 + "\n"
    yield "".join(f"<{chr(97 + i % 26)}>" for i in range(50000)) + "</a></z></a>\n</b></y>\n"
    yield "<a><b/></a>\n" * 20000
    yield "</q>" * 65000 + "<q>\n"


def generated(rng: random.Random) -> Iterator[str]:
    """Yield random inputs of growing size."""
    for count, names in ((8, 2), (30, 3), (100, 5), (500, 10), (3000, 30), (10000, 200), (20000, 4)):
        yield _random(rng, count, names, rng.choice([30, 45, 50]))


def small(rng: random.Random) -> str:
    """Return one tiny random input."""
    return _random(rng, rng.randint(1, 9), rng.randint(1, 3), 40)


def _random(rng: random.Random, count: int, names: int, opening: int) -> str:
    """Write count random tags with some text between them."""
    pool = ["".join(rng.choices("abc", k=rng.randint(1, 1 + names // 3))) for _ in range(names)]
    pieces = []
    for form in rng.choices(["<{}>", "</{}>", "<{}/>"], weights=[opening, 45, 10], k=count):
        pieces.append(form.format(rng.choice(pool)[:12]))
        if not rng.randrange(3):
            pieces.append(rng.choice(["\n", "txt ", "/", ">", " 7\n"]))
    return "".join(pieces) + "\n"


def solve(text: str) -> str:
    """Keep for each name the stack of its open elements' depths."""
    open_at: dict[str, list[int]] = {}
    stack: list[str] = []
    deepest = forced = stray = 0
    for slash, name, empty in re.findall(r"<(/?)([a-z]+)(/?)>", text):
        if slash:
            if not open_at.get(name):
                stray += 1
                continue
            depth = open_at[name][-1]
            while len(stack) >= depth:
                open_at[stack.pop()].pop()
                forced += 1
            forced -= 1
        else:
            deepest = max(deepest, len(stack) + 1)
            if not empty:
                stack.append(name)
                open_at.setdefault(name, []).append(len(stack))
    return f"{deepest} {forced + len(stack)} {stray}\n"


def brute(text: str) -> str:
    """Give every element its interval of tags, then count how many intervals cover each opening."""
    tags = ["<" + part.split(">")[0] for part in text.split("<")[1:]]
    ends: dict[int, int] = {}
    starts = [i for i, tag in enumerate(tags) if "/" not in tag]
    forced = stray = 0
    for i, tag in enumerate(tags):
        if tag.startswith("</"):
            alive = [s for s in starts if s < i and s not in ends]
            same = [s for s in alive if tags[s][1:] == tag[2:]]
            if not same:
                stray += 1
                continue
            for s in alive:
                if s >= same[-1]:
                    ends[s] = i
                    forced += s > same[-1]
    for s in starts:
        if s not in ends:
            ends[s] = len(tags)
            forced += 1
    openings = [i for i, tag in enumerate(tags) if not tag.startswith("</")]
    depths = [1 + sum(s < i < ends[s] for s in starts) for i in openings]
    return f"{max(depths, default=0)} {forced} {stray}\n"
