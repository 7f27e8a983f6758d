# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: different substrings that occur an even number of times."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("4\nabab\n", "4\naaaa\n", "6\naabaab\n")


def case(poem: str) -> str:
    """Return the input of a poem."""
    return f"{len(poem)}\n{poem}\n"


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    yield from map(case, ("z", "zz", "ab", "abcabcabc", "abbaabba", "aabbaabbaa", "mississippi"))
    yield case("a" * 200_000)
    yield case("ab" * 60_000)
    yield case("abc" * 40_001)
    yield case(("b" + "a" * 300) * 300)
    yield case("".join("abcdefghijklmnopqrstuvwxyz"[k * k % 26] for k in range(50_000)))


def fibonacci_word(length: int) -> str:
    """Return the beginning of the word that abaab begins."""
    short, word = "a", "ab"
    while len(word) < length:
        short, word = word, word + short
    return word[:length]


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for count, letters in ((20, "ab"), (200, "abc"), (3000, "ab"), (60_000, "ab"), (60_000, "abcdefghij")):
        yield case("".join(rng.choices(letters, k=rng.randint(count // 2, count))))
    yield case("".join(rng.choices("abcdefgh", k=100_000)) * 2)
    yield case(fibonacci_word(70_000))


def small(rng: random.Random) -> str:
    """One tiny random input."""
    return case("".join(rng.choices("ab", k=rng.randint(1, 10))))


def solve(text: str) -> str:
    """Count the places of the words of each state of a suffix automaton."""
    poem = text.split()[1]
    steps: list[dict[str, int]] = [{}]
    link, length, places = [-1], [0], [0]
    last = 0
    for letter in poem:
        new = len(steps)
        steps.append({})
        length.append(length[last] + 1)
        link.append(0)
        places.append(1)
        state = last
        while state >= 0 and letter not in steps[state]:
            steps[state][letter] = new
            state = link[state]
        if state >= 0:
            other = steps[state][letter]
            if length[other] == length[state] + 1:
                link[new] = other
            else:
                clone = len(steps)
                steps.append(dict(steps[other]))
                length.append(length[state] + 1)
                link.append(link[other])
                places.append(0)
                while state >= 0 and steps[state].get(letter) == other:
                    steps[state][letter] = clone
                    state = link[state]
                link[new] = link[other] = clone
        last = new
    just = 0
    for state in sorted(range(1, len(steps)), key=length.__getitem__, reverse=True):
        places[link[state]] += places[state]
        just += length[state] - length[link[state]] if places[state] % 2 == 0 else 0
    return str(just)


def brute(text: str) -> str:
    """Count every stretch."""
    poem = text.split()[1]
    ends = range(1, len(poem) + 1)
    counts = Counter(poem[start:end] for end in ends for start in range(end))
    return str(sum(count % 2 == 0 for count in counts.values()))
