"""Taking keys out of what is written, passed on or published."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

INSTEAD = "[redacted]"
_LIKE_A_KEY = re.compile(r"\bsk-[A-Za-z0-9_*.-]{8,}")
_SHORTEST = 4  # a "key" such as "x", for servers that want any, is no secret


def redacted(text: str, secrets: Iterable[str], *, similar: bool = False) -> str:
    """Return the text without the secrets, and without all that looks like a key of OpenAI's if ``similar``."""
    for secret in secrets:
        for form in forms(secret):
            text = text.replace(form, INSTEAD)
    return _LIKE_A_KEY.sub(INSTEAD, text) if similar else text


def redacted_value(value: Any, secrets: Iterable[str], *, similar: bool = False) -> Any:
    """Return a value of JSON whose strings, names in objects too, are redacted, however its text has spelled them."""
    secrets = tuple(secrets)
    text = json.dumps(value)
    return value if redacted(text, secrets, similar=similar) == text else _walked(value, secrets, similar=similar)


def _walked(value: Any, secrets: tuple[str, ...], *, similar: bool) -> Any:
    if isinstance(value, str):
        return redacted(value, secrets, similar=similar)
    if isinstance(value, list):
        return [_walked(part, secrets, similar=similar) for part in value]
    if isinstance(value, dict):
        return {
            redacted(name, secrets, similar=similar): _walked(part, secrets, similar=similar)
            for name, part in value.items()
        }
    return value


def forms(secret: str) -> tuple[str, ...]:
    """Return how a secret may be written: as it is, and as in a text of JSON; nothing if it is too short to be one."""
    return tuple(dict.fromkeys((secret, json.dumps(secret)[1:-1]))) if len(secret) >= _SHORTEST else ()
