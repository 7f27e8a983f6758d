"""Taking keys out of what is written or passed on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LIKE_A_KEY = re.compile(r"\bsk-[A-Za-z0-9_*.-]{8,}")
_INSTEAD = "[redacted]"
_SHORTEST = 4  # a "key" such as "x", for servers that want any, is no secret


def redacted(text: str, secrets: Iterable[str], *, similar: bool = False) -> str:
    """Return the text without the secrets, and without all that looks like a key of OpenAI's if ``similar``."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, _INSTEAD)
    return _LIKE_A_KEY.sub(_INSTEAD, text) if similar else text
