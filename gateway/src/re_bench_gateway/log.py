"""The log of calls: append-only, one line of JSON each, written when the call is done."""

from __future__ import annotations

import json
import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from re_bench.errors import UsageError
from re_bench_gateway.errors import internal
from re_bench_gateway.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


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
        # A kill may have left half a line: what follows begins a new one.
        torn = status.st_size > 0 and os.pread(self._handle, 1, status.st_size - 1) != b"\n"
        self._rest = b"\n" if torn else b""
        self._broken = False

    def check(self) -> None:
        """Refuse calls that could not be logged.

        Raises:
            ApiError: if an earlier line could not be written.
        """
        if self._broken:
            raise internal("the gateway cannot write its log and makes no more calls")

    def write(self, entry: dict[str, Any], secrets: Iterable[str]) -> None:
        """Append a line without the secrets; if the system refuses, say so on stderr and make no further calls."""
        line = redacted(json.dumps(entry, separators=(",", ":")), secrets)
        data = memoryview(self._rest + line.encode("ascii") + b"\n")
        self._rest = b""
        try:
            while data:
                data = data[os.write(self._handle, data) :]
        except OSError as error:
            self._broken = True
            with suppress(OSError):  # stderr may be a file on the same disk
                print(f"re-bench gateway: the log of calls cannot be written: {error.strerror}", file=sys.stderr)
