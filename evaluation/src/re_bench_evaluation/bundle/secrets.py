"""Which values must never be in a bundle, and finding them in files."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from re_bench.data.jsonl import read_plain
from re_bench.data.redaction import forms
from re_bench.records import RUNS
from re_bench_evaluation.run import TRIES
from re_bench_evaluation.session import TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_NAMES = re.compile(r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_OF_PLAN = re.compile(r"(?:^|_)(?:variables?|secrets?)$")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHORTEST = 8  # a shorter value of a variable that we only guess to be secret occurs by chance
_LONGEST_TOKEN = 1 << 10
_CHUNK = 1 << 20


def variables_of(plan: Mapping[str, Any]) -> set[str]:
    """Return the environment variables that a plan names as those of keys, tokens and secrets."""
    return set(_variables(plan, named=False))


def values_of(evaluation: Path, plan: Mapping[str, Any]) -> list[str]:
    """Return all values that must not be in the bundle of an evaluation.

    These are the values of the variables that the plan names, those of all other variables and keys of the plan whose
    name is that of a key, a token or a password, and the tokens of the runs' servers.

    Raises:
        OSError: if a file with a token cannot be read.
    """
    chosen = [os.environ.get(name, "") for name in sorted(variables_of(plan))]
    named = [*sorted(os.environ.items()), *_entries(plan)]
    guessed = [value for name, value in named if _NAMES.search(name) and len(value) >= _SHORTEST]
    tokens = [token for run in ("*", f"*/{TRIES}/*") for token in _tokens(evaluation, f"{RUNS}/{run}/{TOKEN}")]
    return [value for value in dict.fromkeys([*chosen, *guessed, *tokens]) if forms(value)]


def _tokens(evaluation: Path, pattern: str) -> Iterator[str]:
    """Yield servers' tokens: of files of ours alone, for an agent that chose what is taken out could hide its work."""
    for path in sorted(evaluation.glob(pattern)):
        token = read_plain(path, _LONGEST_TOKEN).decode(errors="replace").strip()
        if len(token) >= _SHORTEST:
            yield token


def holds_one(path: Path, secrets: Sequence[str]) -> bool:
    """Tell whether a file has one of these values in it, as a text of UTF-8 or in JSON."""
    wanted = [form.encode("utf-8", "surrogateescape") for secret in secrets for form in forms(secret)]
    if not wanted:
        return False
    overlap = max(map(len, wanted)) - 1
    rest = b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            block = rest + chunk
            if any(form in block for form in wanted):
                return True
            rest = block[-overlap:] if overlap else b""
    return False


def _entries(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts of a plan with their keys."""
    for key, entry in value.items() if isinstance(value, dict) else ():
        if isinstance(entry, str):
            yield str(key), entry
        yield from _entries(entry)


def _variables(value: Any, *, named: bool) -> Iterator[str]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _variables(entry, named=named or bool(_OF_PLAN.search(str(key))))
    elif isinstance(value, list):
        for entry in value:
            yield from _variables(entry, named=named)
    elif named and isinstance(value, str) and _VARIABLE.fullmatch(value):
        yield value
