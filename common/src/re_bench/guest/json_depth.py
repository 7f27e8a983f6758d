"""How deep JSON that nobody vouches for is nested, told before it is parsed.

A parser that recurses gives up at a depth that differs between versions of Python; what is refused must not.
This file is also read inside sandboxes, so it uses the standard library only.
"""

from __future__ import annotations

import re

_OPENING = b"[{"
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


def check_depth(text: bytes, most: int) -> None:
    """Do nothing if arrays and objects in ``text`` lie at most ``most`` deep in one another; it need not be JSON.

    Raises:
        ValueError: if one lies deeper.
    """
    if sum(map(text.count, (b"[", b"{"))) <= most:  # most texts; brackets within strings count here
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
