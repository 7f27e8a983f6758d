"""Compile Rust sources in a sandbox, with a cache of binaries and compiler messages."""

from __future__ import annotations

import hashlib
import math
import os
import signal
import stat
import tempfile
import threading
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import UsageError
from re_bench.limits import Limits as Bounds
from re_bench.sandbox.process import describe_exit, run, shown_directory
from re_bench.sandbox.spec import SandboxSpec
from rust_codecontests.judge.toolchain import EDITIONS, find_toolchain, hidden_from_compilers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from re_bench.sandbox.process import Finished
    from re_bench.sandbox.spec import Backend

MAX_SOURCE = 256 << 10
"""Maximum size of a source, in bytes of UTF-8."""

OPTIONS = (
    *("--crate-name", "main", "--crate-type", "bin", "--color", "never", "--error-format", "human"),
    # One code generation unit takes a quarter less CPU time than the default of 16; other cores compile other programs.
    # Stripping symbols reduces a binary from 4.4 MB to 0.4 MB.
    *("-C", "opt-level=2", "-C", "debuginfo=0", "-C", "codegen-units=1", "-C", "strip=symbols"),
    # Without --cap-lints, lints that are errors by default, such as a literal out of range, remain errors.
    *("-A", "warnings"),
)
"""Arguments of rustc, except for the edition and the files."""
_MEMORY_MIB = 1024
_BINARY_MIB = 64
_MESSAGE = 4000
_FAILED = 1  # rustc's exit status for errors in the source
_PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


@dataclass(frozen=True)
class Compiled:
    """The result of compiling a source."""

    program: Path | None
    """The binary, or None after a failure."""
    message: str = ""
    """The reason for the failure, which may be shown to the source's author."""


class Compiler:
    """``rustc`` in a sandbox without network or host files.

    Each source is compiled only once, even if its compilation fails.

    Args:
        backend: the sandbox backend.
        edition: edition of Rust.
        cache: an existing directory for binaries and compiler messages; several processes may share it.

    Raises:
        UsageError: if the edition is unknown, or there is no Rust toolchain.
    """

    def __init__(self, backend: Backend, edition: str, cache: Path) -> None:
        if edition not in EDITIONS:
            raise UsageError(f"there is no Rust edition {edition!r}; choose one of: {', '.join(EDITIONS)}")
        self._backend = backend
        self._toolchain = find_toolchain()
        self._edition = edition
        self._cache = cache
        self._lock = threading.Lock()
        self._key_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._outcomes: dict[str, Compiled] = {}  # includes stopped compilers, to avoid retries
        self.compilations = 0
        """How often rustc was started."""

    def compile(self, source: str, compile_s: float, edition: str | None = None) -> Compiled:
        """Compile ``source`` in at most ``compile_s`` seconds of CPU time, or return the cached result.

        ``edition`` is the source's edition if it differs from the compiler's.
        """
        try:
            text = source.encode()
        except UnicodeEncodeError as error:
            return Compiled(None, f"the source is no text: character {error.start + 1} is half of a surrogate pair")
        if len(text) > MAX_SOURCE:
            size = f"{len(text)} bytes of source are more than the {MAX_SOURCE} allowed"
            return Compiled(None, f"{size}; it was not compiled")
        options = ("--edition", edition or self._edition, *OPTIONS)
        key = hashlib.sha256("\0".join((self._toolchain.version, *options, "")).encode() + text).hexdigest()
        with self._lock:
            key_lock = self._key_locks[key]
        with key_lock:
            if key not in self._outcomes:
                self._outcomes[key] = self._cached(key) or self._compile(key, text, options, compile_s)
            return self._outcomes[key]

    def _cached(self, key: str) -> Compiled | None:
        program, message = self._cache / key, self._cache / f"{key}.txt"
        if program.is_file():
            return Compiled(program)
        with suppress(FileNotFoundError):
            return Compiled(None, message.read_text(encoding="utf-8"))
        return None

    def _compile(self, key: str, text: bytes, options: Sequence[str], compile_s: float) -> Compiled:
        with shown_directory(self._backend, "re-bench-rustc-") as directory:
            out = directory / "out"
            out.mkdir()
            out.chmod(0o777)
            (directory / "main.rs").write_bytes(text)
            with self._lock:
                self.compilations += 1
            command = [str(self._toolchain.rustc), *options, "-o", str(out / "main"), "main.rs"]
            finished = run(self._backend, command, self._sandbox_spec(directory, out, compile_s))
            binary = _binary(out / "main")
            if finished.status == 0 and not finished.stopped and binary is not None:
                return Compiled(self._keep(key, binary, 0o755))
        message = _message(finished, compile_s)
        if finished.status == _FAILED and not finished.stopped:  # timeouts are not stored, because they may not recur
            self._keep(f"{key}.txt", message.encode(), 0o644)
        return Compiled(None, message)

    def _sandbox_spec(self, directory: Path, out: Path, compile_s: float) -> SandboxSpec:
        sysroot = self._toolchain.sysroot
        visible = {str(directory): directory} | ({} if sysroot == Path("/usr") else {str(sysroot): sysroot})
        bounds = Bounds(
            wall_s=3 * compile_s + 2,
            cpu_s=math.ceil(compile_s),
            memory_mib=_MEMORY_MIB,
            processes=64,
            file_mib=_BINARY_MIB,
            disk_mib=2 * _BINARY_MIB,
        )
        hidden = hidden_from_compilers()
        return SandboxSpec(
            visible, {str(out): out}, _PATH, directory=str(directory), limits=bounds, hidden=hidden, sealed=True
        )

    def _keep(self, name: str, content: bytes, mode: int) -> Path:
        """Write a file to the cache atomically, and return its path."""
        path = self._cache / name
        with tempfile.NamedTemporaryFile(dir=self._cache, delete=False) as file:
            file.write(content)
        Path(file.name).chmod(mode)
        Path(file.name).replace(path)
        return path


def _binary(path: Path) -> bytes | None:
    """Return the content of the compiler's output, or None if it is not a regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def _message(finished: Finished, compile_s: float) -> str:
    """Return the beginning of rustc's messages, or the reason why the compiler was stopped or crashed."""
    message = finished.stderr.strip()
    if finished.stopped:
        message = f"the compiler was stopped: {finished.stopped}"
    elif finished.status in {-signal.SIGXCPU, -signal.SIGKILL}:
        message = f"the compiler was stopped: it took more than {compile_s:g} s of CPU time"
    elif finished.status < 0 or not message:
        message = f"the compiler ended with {describe_exit(finished.status)}: {message}"
    return (
        message if len(message) <= _MESSAGE else f"{message[:_MESSAGE]}\n[… {len(message) - _MESSAGE} more characters]"
    )
