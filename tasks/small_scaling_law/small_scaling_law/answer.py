"""Read the three numbers in ``answer.json``; refuse any other content with a one-line reason."""

from __future__ import annotations

import json
import math
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from re_bench.errors import InvalidSubmissionError
from re_bench.guest.json_depth import check_depth

if TYPE_CHECKING:
    from pathlib import Path

FILE = "answer.json"
KEYS = ("n_embd", "max_iters", "loss_prediction")
MAX_BYTES = 4096
MAX_STEPS = 10**12
"""Maximum width, and maximum number of steps: far beyond any budget, and exact as a float."""
MAX_LOSS = 1000.0
"""Maximum predicted loss, in nats; larger values could overflow when converted to rewards."""
_MAX_SHOWN = 40
_MAX_DEPTH = 16
_FORM = f'{FILE} must be one JSON object {{"n_embd": integer, "max_iters": integer, "loss_prediction": number}}'


@dataclass(frozen=True)
class Answer:
    """A submission's prediction."""

    n_embd: int
    max_iters: int
    loss_prediction: float
    """Predicted loss, in nats per token."""


def read_answer(path: Path) -> Answer:
    """Return the answer in the file ``path``.

    Raises:
        InvalidSubmissionError: if the file is not a regular file of at most 4096 bytes that contains exactly the three
            numbers, or a number is out of range.
    """
    values = _parsed(_content(path))
    if not isinstance(values, dict):
        _refuse(f"{_FORM}, got {_kind(values)}")
    for key in values:
        if key not in KEYS:
            _refuse(f"{FILE} has the key {_shown(key)}; {_FORM}")
    missing = [key for key in KEYS if key not in values]
    if missing:
        _refuse(f"{FILE} lacks {' and '.join(missing)}; {_FORM}")
    width, steps = (_integer(key, values[key]) for key in KEYS[:2])
    return Answer(width, steps, _loss(values[KEYS[2]]))


def _content(path: Path) -> bytes:
    """Return the content of a file, after checking the file's type and size."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        what = "is a link; submit the file itself" if path.is_symlink() else f"cannot be read: {error.strerror}"
        _refuse(f"{FILE} {what}")
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            _refuse(f"{FILE} is not a regular file")
        if status.st_size > MAX_BYTES:
            _refuse(f"{FILE} has {status.st_size:,} bytes; three numbers need no more than {MAX_BYTES:,}")
        return os.read(descriptor, MAX_BYTES)
    finally:
        os.close(descriptor)


def _parsed(content: bytes) -> Any:
    if not content.strip():
        _refuse(f"{FILE} is empty; {_FORM}")
    if content.startswith(b"\xef\xbb\xbf"):
        _refuse(f"{FILE} begins with a byte-order mark; save it as UTF-8 without one")
    try:
        check_depth(content, _MAX_DEPTH)
    except ValueError:
        _refuse(f"{FILE} is nested too deeply; {_FORM}")
    try:
        return json.loads(content.decode(), object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError as error:
        _refuse(f"{FILE} is not UTF-8, at byte {error.start}")
    except json.JSONDecodeError as error:
        _refuse(f"{FILE} is not JSON: {error}")
    except ValueError:  # an integer with more digits than Python accepts
        _refuse(f"{FILE} has a number with too many digits; {_FORM}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            _refuse(f"{FILE} has the key {_shown(key)} twice")
        values[key] = value
    return values


def _constant(name: str) -> NoReturn:
    _refuse(f"{FILE} has {name}, which is not a JSON number")


def _integer(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        hint = "; write it without a decimal point or exponent" if isinstance(value, float) else ""
        _refuse(f"{key} must be an integer, got {_kind(value)}{hint}")
    if not 1 <= value <= MAX_STEPS:
        _refuse(f"{key} must be from 1 to {MAX_STEPS:,}, got {_digits(value)}")
    return value


def _loss(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(f"loss_prediction must be a number, got {_kind(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        _refuse("loss_prediction is too large for a float")
    if not 0 < value <= MAX_LOSS:
        _refuse(f"loss_prediction must be above 0 and at most {MAX_LOSS:g} nats, got {_digits(value)}")
    return float(value)


def _digits(value: float) -> str:
    """Return a number as text, or its number of digits if that text is long."""
    text = str(value)
    return text if len(text) <= _MAX_SHOWN else f"a number of {len(text.lstrip('-')):,} digits"


def _kind(value: object) -> str:
    """Return a description of a JSON value for messages: its type, and the value of a number or constant."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"the number {_digits(value)}"
    return "a string" if isinstance(value, str) else "an array" if isinstance(value, list) else "an object"


def _shown(key: str) -> str:
    return ascii(key if len(key) <= _MAX_SHOWN else key[:_MAX_SHOWN] + "...")


def _refuse(reason: str) -> NoReturn:
    raise InvalidSubmissionError(reason)
