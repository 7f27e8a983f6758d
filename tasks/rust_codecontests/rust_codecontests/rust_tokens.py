"""Rust source as tokens, without what does not make it another program: layout, comments, `use` of the library."""

from __future__ import annotations

import re
from typing import NamedTuple

KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """as break const continue else enum false fn for if impl in let loop match mod move mut pub ref return
        self Self static struct super trait true type unsafe use where while dyn macro_rules""",
    )
)
_TOKEN = re.compile(
    r"""[ \t\r\n]+|//(?!/(?!/)|!)[^\n]*|(?P<block>/\*)|
    (?P<token>//[^\n]*                                            # a comment that is documentation: macros can read it
    |(?:b|c)?r(?P<hashes>\#*)".*?(?:"(?P=hashes)|\Z)|[bc]?"(?:[^"\\]|\\.)*\\?(?:"|\Z)|b?'(?:[^'\\\n]|\\[^'\n]{1,9}|\\')'
    |'?\w+|.)""",
    re.DOTALL | re.VERBOSE,
)
_DOCUMENTATION = ("*", "!")  # after the mark of a block comment
_BLOCK_MARK = re.compile(r"/\*|\*/")
_LONGEST_DECLARATION = 200  # in tokens, so that many that do not end take no long time
_LIBRARY = ("std", "core", "alloc")
_FENCE = re.compile(r"^[ \t]*```[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_FIRST_LINE = re.compile(
    r"^[ \t]*(?:#!?\[|//|/\*|(?:pub )?(?:use|fn|struct|enum|impl|trait|type|mod|const|static|macro_rules!|extern)\b)",
    re.MULTILINE,
)


class Token(NamedTuple):
    """A token of a program."""

    text: str
    start: int
    end: int


def tokens_of(source: str) -> list[Token]:
    """Return the tokens that make a program what it is.

    Comments are left out, but for documentation, and so are `use` declarations of the standard library that rename
    nothing, and attributes `allow`. Where we split words otherwise than the compiler, we leave out no more than it.
    """
    tokens: list[Token] = []
    position = 0
    while match := _TOKEN.match(source, position):
        position = match.end()
        if match["block"]:
            position = _block_end(source, position)
        if match["token"] or (match["block"] and source[match.end() : match.end() + 1] in _DOCUMENTATION):
            tokens.append(Token(source[match.start() : position], match.start(), position))
    return _without_declarations(tokens)


def texts_of(source: str) -> list[str]:
    """Return the texts of :func:`tokens_of`."""
    return [token.text for token in tokens_of(source)]


def _block_end(source: str, position: int) -> int:
    """Return where a block comment ends; they can be nested."""
    depth = 1
    while depth and (mark := _BLOCK_MARK.search(source, position)):
        depth += 1 if mark[0] == "/*" else -1
        position = mark.end()
    return position if depth == 0 else len(source)


def _without_declarations(tokens: list[Token]) -> list[Token]:
    texts = [token.text for token in tokens]
    kept: list[Token] = []
    position = 0
    while position < len(tokens):
        end = _declaration_end(texts, position)
        if end == position:
            kept.append(tokens[position])
            end += 1
        position = end
    return kept


def _declaration_end(texts: list[str], start: int) -> int:
    """Return the end of what may be left out at ``start``, which is ``start`` if nothing may."""
    if texts[start] == "use" and texts[start + 1 : start + 2] and texts[start + 1] in _LIBRARY:
        end = _index(texts, ";", start) + 1
        return end if end and "as" not in texts[start:end] else start
    if texts[start] == "#":
        begin = start + 1 + (texts[start + 1 : start + 2] == ["!"])
        if texts[begin : begin + 3] == ["[", "allow", "("]:
            return _index(texts, "]", begin) + 1 or start
    return start


def _index(texts: list[str], text: str, start: int) -> int:
    try:
        return texts.index(text, start, start + _LONGEST_DECLARATION)
    except ValueError:
        return -1


def pieces_of(answer: str) -> list[str]:
    """Return the parts of a model's answer that may be code: what stands in fences, and what looks like it outside."""
    plain = _FENCE.sub("\n", answer)
    first = _FIRST_LINE.search(plain)
    return [*(match[1] for match in _FENCE.finditer(answer)), *([plain[first.start() :]] if first else [])]
