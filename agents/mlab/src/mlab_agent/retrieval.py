"""Find the passages of a long text that are relevant to a query.

A text is split into passages of a few dozen lines. They are ranked by BM25 over words, where names such as
``learning_rate`` and ``maxIters`` also count as the words in them; the best ones that fit are returned in order.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[a-zA-Z])(?=\d)|(?<=\d)(?=[a-zA-Z])")
_DEFINITION = re.compile(r"^[ \t]*(?:(?:async )?def |class |#{1,6} |fn |func |function |export )\S.*$", re.MULTILINE)
_SUFFIXES = ("ations", "ation", "ings", "ing", "ers", "er", "ies", "es", "ed", "s", "e")
_STOP_WORDS = frozenset(
    _WORD.findall(
        "a an and are as at be by do for from how i in is it its of on or that the this to what where which with"
    )
)
_PASSAGE_LINES, _PASSAGE_CHARS = 30, 1500
_BM25_K, _BM25_B = 1.2, 0.75
_MIN_STEM_CHARS = 3


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
    def location(self) -> str:
        """Its lines, in words."""
        if self.piece:
            return f"line {self.first}, piece {self.piece}"
        return f"lines {self.first}-{self.last}" if self.last > self.first else f"line {self.first}"


class Index:
    """Texts that are ranked by their relevance to a query.

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
            matching = self._postings.get(word, ())
            weight = math.log(1 + (total - len(matching) + 0.5) / (len(matching) + 0.5))
            for index, count in matching:
                scores[index] += (
                    weight * count * (_BM25_K + 1) / (count + _BM25_K * (1 - _BM25_B + _BM25_B * lengths[index] / mean))
                )
        return scores


def words_of(text: str) -> list[str]:
    """Return the words of a text as they are compared: lower case, names split, suffixes removed."""
    words = []
    for word in _WORD.findall(text):
        parts = _HUMP.split(word)
        words += [_stem(part.lower()) for part in parts]
        if len(parts) > 1:
            words.append(word.lower())
    return [word for word in words if word not in _STOP_WORDS]


def split_passages(text: str) -> list[Passage]:
    """Split a text; the passages together are all of it, in order."""
    passages: list[Passage] = []
    pending: list[str] = []
    size = 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if pending and (len(pending) >= _PASSAGE_LINES or size + len(line) > _PASSAGE_CHARS):
            passages.append(Passage(number - len(pending), number - 1, "".join(pending)))
            pending, size = [], 0
        if len(line) > _PASSAGE_CHARS:
            pieces = [line[offset : offset + _PASSAGE_CHARS] for offset in range(0, len(line), _PASSAGE_CHARS)]
            passages += [Passage(number, number, piece, count) for count, piece in enumerate(pieces, 1)]
        else:
            pending.append(line)
            size += len(line)
    if pending:
        last = passages[-1].last if passages else 0
        passages.append(Passage(last + 1, last + len(pending), "".join(pending)))
    return passages


def retrieve(passages: list[Passage], query: str, chars: int, excluded: frozenset[int] = frozenset()) -> list[int]:
    """Return the indices of the most relevant passages, in the order of the text.

    Args:
        passages: of a text.
        query: words to search for.
        chars: how many characters they may have together; the best one is returned in any case.
        excluded: indices that are not returned.
    """
    scores = Index(passage.text for passage in passages).scores(query)
    if passages:  # the beginning says what a file is; without any match, passages are spread evenly
        scores[0] += 0.3 * max(scores, default=0.0)
    rank = {index: rank for rank, index in enumerate(_spread(len(passages)))}
    chosen: list[int] = []
    for index in sorted(range(len(passages)), key=lambda index: (-scores[index], rank[index])):
        if index in excluded:
            continue
        if chosen and len(passages[index].text) > chars:
            continue
        chosen.append(index)
        chars -= len(passages[index].text)
        if chars <= 0:
            break
    return sorted(chosen)


def outline(text: str, limit: int = 60) -> str:
    """Return the lines that define something, with their numbers, evenly thinned out to ``limit``."""
    definitions = [(text.count("\n", 0, match.start()) + 1, match[0][:100]) for match in _DEFINITION.finditer(text)]
    step = max(1, -(-len(definitions) // limit))
    return "\n".join(f"{number}: {line}" for number, line in definitions[::step])


def _spread(number: int) -> list[int]:
    """Return 0 to ``number`` - 1 so that any beginning of the list is spread evenly."""
    order = [0, number - 1] if number > 1 else list(range(number))
    step = 1 << max(0, number - 1).bit_length()
    included = set(order)
    while step:
        new = [index for index in range(step, number, 2 * step) if index not in included]
        order += new
        included.update(new)
        step //= 2
    return order + [index for index in range(number) if index not in included]


def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _MIN_STEM_CHARS:
            return word[: -len(suffix)]
    return word
