"""A program beside a session's shell, seen from the server: what it is asked to do, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from re_bench_server.shell.protocol import clean_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench.guest.truncate import HeadTail

OUTPUT_BYTES = 10 << 20
"""How much of each of a program's outputs is kept by default, in bytes."""
_MAX_TEXT = 1000
_STATUSES = range(256)
_ERRORS = range(1, 134)


@dataclass(frozen=True)
class ProgramOutput:
    """The outcome of a program."""

    status: int | None
    """Exit status, 128 and the number of the signal that killed it, or, with an :attr:`error` and as in a shell, 127 if
    there is no such program, and 126 if it cannot be started. None if it timed out, or was ended with everything else
    in the sandbox."""
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    """Whether a middle of an output is left out, with a line that says so in its place."""
    timed_out: bool = False
    seconds: float = 0.0
    error: str = ""
    """Why it was not started, or was ended with everything else; or the empty string."""
    errno: int = 0
    """The system's number of the error for which it was not started; 0 if there is none."""
    ran: bool = True
    """Whether there was a sandbox for it: the session may have ended before."""

    @classmethod
    def parse(cls, reply: Mapping[str, Any], outputs: Mapping[str, HeadTail], keep: int) -> ProgramOutput:
        """Return the outcome that a supervisor's reply tells, all of which an agent can make up.

        ``keep`` bytes are kept of each output.
        """
        status, code = reply.get("status"), reply.get("errno")
        code = code if type(code) is int and code in _ERRORS else 0
        return cls(
            status=status if type(status) is int and status in _STATUSES else None,
            stdout=outputs["stdout"].data(),
            stderr=outputs["stderr"].data(),
            truncated=any(output.total > keep for output in outputs.values()),
            timed_out=reply.get("timed_out") is True,
            error=clean_text(reply.get("error"))[:_MAX_TEXT] if code else "",
            errno=code,
        )


class ProgramOptions(TypedDict, total=False):
    """How a program runs; all of it has a default."""

    stdin: bytes
    """What it reads, from a file; nothing by default."""
    directory: str | None
    """Where it runs, from the workspace on; the workspace by default."""
    environment: Mapping[str, str]
    """Variables beside those of the sandbox."""
    timeout_s: float | None
    """Seconds that it may take; by default there is no limit."""
    output_bytes: int
    """How much of stdout, and of stderr, is kept: the first and the last half; by default :data:`OUTPUT_BYTES`."""
