"""The log of calls: append-only, one line of JSON each, written when the call is done."""

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
    """The log at a path, locked for as long as this lives. Only its owner may read it.

    A gateway that is asked to end still logs the calls that it cuts; the next one on the same log waits for its lock.

    Raises:
        UsageError: if it cannot be opened or is no plain file.
    """

    def __init__(self, path: Path) -> None:
        self._lock = ExitStack()
        try:
            self._file = self._lock.enter_context(locked_log(path))
        except OSError as error:
            raise UsageError(f"the log of calls cannot be opened: {path}: {error.strerror}") from None
        self.broken = False
        """Whether a line could not be written; no more calls are made then."""

    def spent_by(self, names: Collection[str]) -> dict[str, Amount]:
        """Return what the calls of sessions of earlier gateways have cost, by the sessions' names."""
        spent = dict.fromkeys(names, Amount())
        for line in self._file.lines() if names else ():
            name, amount = _cost(line)
            if name in spent:
                spent[name] += amount
        return spent

    def write(self, entry: dict[str, Any], secrets: Iterable[str]) -> int:
        """Append a line without the secrets and return its length in bytes.

        If the system refuses, report it on stderr and make no further calls.
        """
        line = redacted(json.dumps(entry, separators=(",", ":")), secrets).encode("ascii")
        try:
            self._file.append(line, sync=False)
        except OSError as error:
            self.broken = True
            with suppress(OSError):  # stderr may be a file on the same disk
                print(f"re-bench gateway: the log of calls cannot be written: {error.strerror}", file=sys.stderr)
        return len(line) + 1


def _cost(line: bytes) -> tuple[str, Amount]:
    """Return the session of a line's call and the cost; an empty name and nothing for a line that a kill has torn."""
    entry = json_object(line) or {}
    try:
        tokens, dollars = entry["tokens"], Decimal(str(entry["dollars"] or 0))
        answered = entry["ending"] == "answered" or any(tokens.values())
        return str(entry["session"]), Amount(int(answered), tokens["prompt"], tokens["completion"], dollars)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        return "", Amount()
