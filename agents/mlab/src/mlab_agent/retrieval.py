"""Finding the passages of a long text that matter for a question.

A text is split into passages of a few dozen lines. They are ranked by BM25 over words, where names such as
``learning_rate`` and ``maxIters`` also count as the words in them; the best ones that fit are returned in their order.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Index", "Passage", "outline", "passages_of", "retrieve", "words_of"]

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[a-zA-Z])(?=\d)|(?<=\d)(?=[a-zA-Z])")
_DEFINITION = re.compile(r"^[ \t]*(?:(?:async )?def |class |#{1,6} |fn |func |function |export )\S.*$", re.MULTILINE)
_ENDINGS = ("ations", "ation", "ings", "ing", "ers", "er", "ies", "es", "ed", "s", "e")
_COMMON = frozenset(
    _WORD.findall(
        "a an and are as at be by do for from how i in is it its of on or that the this to what where which with"
    )
)
_LINES, _CHARS = 30, 1500
_K, _B = 1.2, 0.75
_LEAST_STEM = 3


@dataclass(frozen=True)
class Passage:
    """Some lines of a text, or a piece of a line that is very long."""

    first: int
    """The number of the first line, from 1."""
    last: int
    text: str
    piece: int = 0
    """Which piece of the line it is, from 1; 0 for whole lines."""

    @property
    def place(self) -> str:
        """Where it is, in words."""
        if self.piece:
            return f"line {self.first}, piece {self.piece}"
        return f"lines {self.first}-{self.last}" if self.last > self.first else f"line {self.first}"


class Index:
    """Texts that are ranked by how much they bear on a query.

    It is Okapi BM25 (Robertson et al., "Okapi at TREC-3", 1994) with its usual parameters.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._postings: dict[str, list[tuple[int, int]]] = {}
        self._lengths: list[int] = []
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Append a text."""
        words = Counter(words_of(text))
        for word, count in words.items():
            self._postings.setdefault(word, []).append((len(self._lengths), count))
        self._lengths.append(words.total())

    def scores(self, query: str) -> list[float]:
        """Return the score of each text, 0 for one that has none of the query's words."""
        total, lengths = len(self._lengths), self._lengths
        scores = [0.0] * total
        mean = (sum(lengths) / total if total else 0) or 1.0
        for word in set(words_of(query)):
            having = self._postings.get(word, ())
            weight = math.log(1 + (total - len(having) + 0.5) / (len(having) + 0.5))
            for index, count in having:
                scores[index] += weight * count * (_K + 1) / (count + _K * (1 - _B + _B * lengths[index] / mean))
        return scores


def words_of(text: str) -> list[str]:
    """Return the words of a text as they are compared: lower case, names split, endings cut off."""
    found = []
    for word in _WORD.findall(text):
        parts = _HUMP.split(word)
        found += [_stem(part.lower()) for part in parts]
        if len(parts) > 1:
            found.append(word.lower())
    return [word for word in found if word not in _COMMON]


def passages_of(text: str) -> list[Passage]:
    """Split a text; the passages together are all of it, in order."""
    passages: list[Passage] = []
    held: list[str] = []
    size = 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if held and (len(held) >= _LINES or size + len(line) > _CHARS):
            passages.append(Passage(number - len(held), number - 1, "".join(held)))
            held, size = [], 0
        if len(line) > _CHARS:
            pieces = [line[at : at + _CHARS] for at in range(0, len(line), _CHARS)]
            passages += [Passage(number, number, piece, count) for count, piece in enumerate(pieces, 1)]
        else:
            held.append(line)
            size += len(line)
    if held:
        last = passages[-1].last if passages else 0
        passages.append(Passage(last + 1, last + len(held), "".join(held)))
    return passages


def retrieve(passages: list[Passage], query: str, chars: int, without: frozenset[int] = frozenset()) -> list[int]:
    """Return the indices of the passages that matter most, in the order of the text.

    Args:
        passages: of a text.
        query: what is looked for.
        chars: how many characters they may have together; the best one is returned in any case.
        without: indices that are not wanted any more.
    """
    index_of_words = Index(passage.text for passage in passages)
    scores = index_of_words.scores(query)
    if passages:  # the beginning says what a file is; else spread evenly when no word is found
        scores[0] += 0.3 * max(scores, default=0.0)
    spread = {index: place for place, index in enumerate(_spread(len(passages)))}
    chosen: list[int] = []
    for index in sorted(range(len(passages)), key=lambda each: (-scores[each], spread[each])):
        if index in without:
            continue
        if chosen and len(passages[index].text) > chars:
            continue
        chosen.append(index)
        chars -= len(passages[index].text)
        if chars <= 0:
            break
    return sorted(chosen)


def outline(text: str, most: int = 60) -> str:
    """Return the lines that define something, with their numbers, evenly thinned out to ``most``."""
    found = [(text.count("\n", 0, match.start()) + 1, match[0][:100]) for match in _DEFINITION.finditer(text)]
    step = max(1, -(-len(found) // most))
    return "\n".join(f"{number}: {line}" for number, line in found[::step])


def _spread(number: int) -> list[int]:
    """Return 0 to ``number`` - 1 so that any beginning of the list is spread evenly."""
    order = [0, number - 1] if number > 1 else list(range(number))
    step = 1 << max(0, number - 1).bit_length()
    seen = set(order)
    while step:
        fresh = [index for index in range(step, number, 2 * step) if index not in seen]
        order += fresh
        seen.update(fresh)
        step //= 2
    return order + [index for index in range(number) if index not in seen]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            return word[: -len(ending)]
    return word
