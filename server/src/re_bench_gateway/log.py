"""Append-only log of calls, one JSON object per line, written when a call has ended."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack, suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from re_bench.data.jsonl import json_object, locked_log
from re_bench.data.redaction import redacted
from re_bench.errors import UsageError
from re_bench_gateway.budget import Amount

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path


class CallLog:
    """The log at a path, locked for the lifetime of this object and readable by its owner only.

    A terminating gateway still logs the calls that it aborts; the next gateway with the same log waits for the lock.
    """

    def __init__(self, path: Path) -> None:
        self._lock = ExitStack()
        try:
            self._file = self._lock.enter_context(locked_log(path))
        except OSError as error:
            raise UsageError(f"{path}: cannot open the log of calls ({error.strerror})") from None
        self.broken = False
        """Whether a write failed; no more calls are accepted then."""

    def spent_by(self, names: Collection[str]) -> dict[str, Amount]:
        """Return the logged cost of earlier sessions by name."""
        spent = dict.fromkeys(names, Amount())
        for line in self._file.lines() if names else ():
            name, amount = _cost(line)
            if name in spent:
                spent[name] += amount
        return spent

    def write(self, entry: dict[str, Any], secrets: Iterable[str]) -> int:
        """Append a redacted line and return its length in bytes; a failure sets ``broken``."""
        line = redacted(json.dumps(entry, separators=(",", ":")), secrets).encode("ascii")
        try:
            self._file.append(line, sync=False)
        except OSError as error:
            self.broken = True
            with suppress(OSError):  # stderr may be on the same disk
                print(f"re-bench gateway: cannot write the log of calls ({error.strerror})", file=sys.stderr)
        return len(line) + 1


def _cost(line: bytes) -> tuple[str, Amount]:
    """Return the session's name and the cost from a line; an empty name for an incomplete line."""
    entry = json_object(line) or {}
    try:
        tokens, dollars = entry["tokens"], Decimal(str(entry["dollars"] or 0))
        answered = entry["ending"] == "answered" or any(tokens.values())
        return str(entry["session"]), Amount(int(answered), tokens["prompt"], tokens["completion"], dollars)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        return "", Amount()
