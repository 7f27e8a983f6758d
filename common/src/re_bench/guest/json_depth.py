"""Check how deeply untrusted JSON is nested before parsing it.

The depth at which the parser raises RecursionError differs between Python versions; the limit must not.
Sandboxes import this file, so it uses only the standard library.
"""

from __future__ import annotations

import re

_OPENING = b"[{"
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


def check_depth(text: bytes, most: int) -> None:
    """Raise if arrays and objects in ``text``, which need not be valid JSON, are nested more than ``most`` deep.

    Raises:
        ValueError: if they are.
    """
    if sum(map(text.count, (b"[", b"{"))) <= most:  # fast path, which also counts brackets in strings
        return
    depth = 0
    for match in _TOKEN.finditer(text):
        first = text[match.start()]
        if first in _OPENING:
            depth += 1
            if depth > most:
                raise ValueError(f"it is nested more than {most} deep")
        elif first in b"]}":
            depth -= 1
