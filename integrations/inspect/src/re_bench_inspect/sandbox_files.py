"""Files in a sandbox, read and written by programs in it: with its user's rights, through no link out of it."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from inspect_ai.util import OutputLimitExceededError, SandboxEnvironmentLimits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from re_bench_server.shell.program import ProgramOutput

    Execute = Callable[..., Awaitable[ProgramOutput]]

_TIMEOUT_S = 600.0
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
_READ = 'exec head -c "$2" "$1"'
_WRITE = 'mkdir -p "${1%/*}/" && exec cat > "$1"'
_ERRORS = (
    (errno.ENOENT, "No such file or directory"),
    (errno.ENOENT, "Not a directory"),
    (errno.ENOENT, "nonexistent"),  # dash, for a directory
    (errno.EACCES, "Permission denied"),
    (errno.EACCES, "Operation not permitted"),
    (errno.EACCES, "Read-only file system"),  # of which Inspect knows nothing
    (errno.EISDIR, "Is a directory"),
    (errno.ENAMETOOLONG, "File name too long"),
    (errno.ELOOP, "Too many levels of symbolic links"),
    (errno.ENOSPC, "No space left on device"),
)
"""What the tools say at the end of their message, and the error that it stands for."""


async def read(execute: Execute, file: str) -> bytes:
    """Return the contents of a file.

    Raises:
        OutputLimitExceededError: if it is longer than Inspect takes.
        OSError: as Inspect wants it: FileNotFoundError, PermissionError, IsADirectoryError, TimeoutError or another.
    """
    limit = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
    output = await _run(execute, _READ, file, str(limit + 1), output_bytes=limit + 2)
    if len(output.stdout) > limit:
        raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
    return output.stdout


async def write(execute: Execute, file: str, contents: bytes) -> None:
    """Write a file; the directories above it are made.

    Raises:
        OSError: as :func:`read` does.
    """
    await _run(execute, _WRITE, file, stdin=contents)


async def _run(execute: Execute, script: str, file: str, *arguments: str, **options: object) -> ProgramOutput:
    path = file if file.startswith("/") else f"./{file}"  # which no tool takes for an option
    command = ["/bin/sh", "-c", script, "sh", path, *arguments]
    output = await execute(command, environment=_ENVIRONMENT, timeout_s=_TIMEOUT_S, **options)
    if output.timed_out:
        raise TimeoutError(f"{file}: it took longer than {_TIMEOUT_S:.0f} s")
    if output.status != 0:
        message = output.stderr.decode(errors="replace").strip() or output.error
        reason = message or "it cannot be written; the sandbox's disk may be full"
        code = next((code for code, text in _ERRORS if message.endswith(text)), errno.EIO)
        raise OSError(code, reason, file)  # of which Python makes the subclass
    return output
