"""The log of calls: append-only, one line of JSON each, written when the call is done."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import sys
import time
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from re_bench.data.redaction import redacted
from re_bench.errors import UsageError
from re_bench_gateway.budget import Amount

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OTHERS_END_S = 20.0
_POLL_S = 0.05


class CallLog:
    """The log at a path, open for as long as this lives. Only its owner may read it.

    Raises:
        UsageError: if it cannot be opened or is no plain file.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._handle = os.open(path, _FLAGS, 0o600)
        except OSError as error:
            raise UsageError(f"the log of calls cannot be opened: {path}: {error.strerror}") from None
        status = os.fstat(self._handle)
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"the log of calls must be a plain file: {path}")
        fcntl.flock(self._handle, fcntl.LOCK_SH)
        # A kill may have left half a line: what follows begins a new one.
        torn = status.st_size > 0 and os.pread(self._handle, 1, status.st_size - 1) != b"\n"
        self._rest = b"\n" if torn else b""
        self.broken = False
        """Whether a line could not be written; no more calls are made then."""

    def spent_by(self, names: Collection[str]) -> dict[str, Amount]:
        """Return what the calls of sessions of earlier gateways have cost, by the sessions' names.

        Raises:
            UsageError: if another gateway still writes the log and does not end.
        """
        spent = dict.fromkeys(names, Amount())
        if names:
            self._wait_for_others()
            with os.fdopen(os.dup(self._handle), "rb") as file:
                file.seek(0)
                for line in file:
                    name, amount = _cost(line)
                    if name in spent:
                        spent[name] += amount
        return spent

    def _wait_for_others(self) -> None:
        """Wait for the end of a gateway that was told to end: it logs the calls that it cuts."""
        deadline = time.monotonic() + _OTHERS_END_S
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise UsageError("another gateway still writes the log of calls that is to be resumed") from None
                time.sleep(_POLL_S)
            else:
                fcntl.flock(self._handle, fcntl.LOCK_SH)
                return

    def write(self, entry: dict[str, Any], secrets: Iterable[str]) -> int:
        """Append a line without the secrets and return its length in bytes.

        If the system refuses, say so on stderr and make no further calls.
        """
        line = redacted(json.dumps(entry, separators=(",", ":")), secrets)
        data = memoryview(self._rest + line.encode("ascii") + b"\n")
        size = len(data)
        self._rest = b""
        try:
            while data:
                data = data[os.write(self._handle, data) :]
        except OSError as error:
            self.broken = True
            with suppress(OSError):  # stderr may be a file on the same disk
                print(f"re-bench gateway: the log of calls cannot be written: {error.strerror}", file=sys.stderr)
        return size


def _cost(line: bytes) -> tuple[str, Amount]:
    """Return the session of a line's call, and what it cost; for a torn line, an empty name and nothing."""
    try:
        entry = json.loads(line)
        tokens, dollars = entry["tokens"], Decimal(str(entry["dollars"] or 0))
        answered = entry["ending"] == "answered" or any(tokens.values())
        return str(entry["session"]), Amount(int(answered), tokens["prompt"], tokens["completion"], dollars)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        return "", Amount()
