"""Programs alongside a session's shell: options and outcome, on the server's side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from re_bench_server.shell.protocol import clean_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench.guest.truncate import HeadTail

OUTPUT_BYTES = 10 << 20
"""Default maximum of each output of a program, in bytes."""
_MAX_TEXT = 1000
_STATUSES = range(256)
_ERRORS = range(1, 134)


@dataclass(frozen=True)
class ProgramOutput:
    """The outcome of a program."""

    status: int | None
    """Exit status, or 128 plus the signal; with an :attr:`error` 127 (not found) or 126 (cannot start). None after a
    timeout or if the whole sandbox was ended."""
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    """Whether a middle of an output was replaced by a line that says so."""
    timed_out: bool = False
    seconds: float = 0.0
    error: str = ""
    """Why it did not start or was ended with everything else; or empty."""
    errno: int = 0
    """The errno of a failed start; otherwise 0."""
    ran: bool = True
    """Whether there was a sandbox; false after the end of the session."""

    @classmethod
    def parse(cls, reply: Mapping[str, Any], outputs: Mapping[str, HeadTail], keep: int) -> ProgramOutput:
        """Return the outcome from a supervisor's reply, which an agent can forge, keeping ``keep`` bytes per output."""
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
    """Options of a program, all with defaults."""

    stdin: bytes
    """Its input; default: empty."""
    directory: str | None
    """Working directory, relative to the workspace; default: the workspace."""
    environment: Mapping[str, str]
    """Additional variables."""
    timeout_s: float | None
    """Time limit in seconds; default: none."""
    output_bytes: int
    """Maximum of stdout, and of stderr: first and last half; default: :data:`OUTPUT_BYTES`."""
