"""Find the passages of a long text that are relevant to a query.

A text is split into passages of a few dozen lines. A passage scores for each word of the query that it has, the rarer
in the text the more; names such as ``learning_rate`` and ``maxIters`` also count as the words in them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_PASSAGE_LINES, _PASSAGE_CHARS = 30, 1500
_STEM_CHARS = 6
_SHORT_WORD = 3


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
        """Its lines as text."""
        if self.piece:
            return f"line {self.first}, piece {self.piece}"
        return f"lines {self.first}-{self.last}" if self.last > self.first else f"line {self.first}"


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


def retrieve(passages: list[Passage], query: str, chars: int) -> list[int]:
    """Return the indices of the most relevant passages, in the order of the text.

    Args:
        passages: of a text.
        query: words to search for.
        chars: how many characters they may have together; the best one is returned in any case.
    """
    words = [_words(passage.text) for passage in passages]
    weights = {
        word: math.log(len(words) / count) + 0.1 for word in _words(query) if (count := sum(word in w for w in words))
    }
    scores = [sum(weights[word] for word in found & weights.keys()) for found in words]
    if scores:  # the beginning says what a file is
        scores[0] += 0.3 * max(scores)
    chosen: list[int] = []
    for index in sorted(range(len(passages)), key=lambda index: -scores[index]):
        if not chosen or len(passages[index].text) <= chars:
            chosen.append(index)
            chars -= len(passages[index].text)
            if chars <= 0:
                break
    return sorted(chosen)


def _words(text: str) -> set[str]:
    """Return the words of a text as they are compared: lower case, names split, only the beginning of long words."""
    whole = _WORD.findall(text)
    parts = [part for word in whole for part in (word, *_PART.findall(word))]
    return {part.lower()[:_STEM_CHARS] for part in parts if len(part) >= _SHORT_WORD or part.isdigit()}
