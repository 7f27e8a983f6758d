"""Options and outcome of a program that runs alongside a session's shell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from re_bench_server.shell.protocol import clean_status, clean_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench.guest.truncate import HeadTail

OUTPUT_BYTES = 10 << 20
"""Default maximum size of a program's stdout, and of its stderr, in bytes."""
_MAX_TEXT = 1000
_ERRORS = range(1, 134)


@dataclass(frozen=True)
class ProgramOutput:
    """The outcome of a program."""

    status: int | None
    """Exit status, or 128 plus the signal number; if there is an :attr:`error`, 127 (not found) or 126 (cannot start).
    None after a timeout, or if the whole sandbox was killed."""
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    """Whether the middle of stdout or stderr was replaced by a line that says so."""
    timed_out: bool = False
    seconds: float = 0.0
    error: str = ""
    """Why the program did not start, or was killed with all other processes; otherwise empty."""
    errno: int = 0
    """The errno of a failed start; otherwise 0."""
    ran: bool = True
    """Whether there was a sandbox to run in; False after the end of the session."""

    @classmethod
    def parse(cls, reply: Mapping[str, Any], outputs: Mapping[str, HeadTail], keep: int) -> ProgramOutput:
        """Return the outcome from a supervisor's reply, which an agent can forge; each output keeps ``keep`` bytes."""
        code = reply.get("errno")
        code = code if type(code) is int and code in _ERRORS else 0
        return cls(
            status=clean_status(reply.get("status")),
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
    """The program's stdin; default: empty."""
    directory: str | None
    """Working directory, relative to the workspace; default: the workspace."""
    environment: Mapping[str, str]
    """Additional environment variables."""
    timeout_s: float | None
    """Time limit in seconds; default: none."""
    output_bytes: int
    """Maximum size of stdout, and of stderr; the middle of longer output is dropped. Default: :data:`OUTPUT_BYTES`."""
