# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Find programs in a model's answers."""

from __future__ import annotations

import re

_FENCED = re.compile(r"^[ \t]*```([^\n`]*)\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_MAIN = re.compile(r"^\s*(?:pub )?fn main\s*\(", re.MULTILINE)
_FIRST_LINE = re.compile(
    r"^(?:#!?\[|//|/\*|(?:pub )?(?:use|fn|struct|enum|impl|trait|type|mod|const|static|macro_rules!|extern)\b)",
    re.MULTILINE,
)
_LAST_LINE = re.compile(r"^\}", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def program_in(text: str) -> str:
    """Return the Rust program in an answer, or an empty string.

    The program is the longest fenced block with a main function. Without such a block, the program reaches from the
    first line outside of fences that may begin a program to the last closing brace at the beginning of a line.
    """
    blocks = [block for _language, block in _FENCED.findall(text) if _MAIN.search(block)]
    if blocks:
        return max(blocks, key=len)
    plain = _FENCED.sub("", text)
    first, ends = _FIRST_LINE.search(plain), [found.end() for found in _LAST_LINE.finditer(plain)]
    if first is None or not ends or not _MAIN.search(plain):
        return ""
    return plain[first.start() : ends[-1]] + "\n"


def key(source: str) -> str:
    """Return a key that is equal for programs that differ only in comments and layout."""
    return "".join(_COMMENT.sub("", source).split())
