"""Run a script on this machine: in bubblewrap where that works, in a process group, with a short environment."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mlab_agent.trace import MIN_SECRET_CHARS
from mlab_agent.workspaces.files import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_GIB = 1 << 30
_RUN_VARIABLE = "MLAB_AGENT_RUN"
_GRACE_S = 2.0
_POLL_S = 0.05
_PROBE_S = 60
_SHOWN_BYTES = 64 << 10  # of a stream at a time
_ACCELERATORS = ("nvidia*", "dri", "kfd", "accel*", "infiniband", "dxg")
_ROOT_MAY = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID")
_CARRY_OUT_COMMANDS = ("/run/user", "/run/dbus", "/run/systemd/private", "/run/docker.sock", "/run/containerd")
"""Sockets of programs that would carry out a script's commands outside of bubblewrap."""
_PASSED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TERM|COLUMNS|LINES|TMPDIR|TEMP|TMP|MLAB_AGENT_RUN"
    r"|PYTHON\w*|VIRTUAL_ENV|CONDA_(?:PREFIX|DEFAULT_ENV)|LD_LIBRARY_PATH|LIBRARY_PATH|CPATH|C_INCLUDE_PATH|CC|CXX"
    r"|PKG_CONFIG_PATH|CMAKE_PREFIX_PATH|JAVA_HOME|(?:PIP|UV)_\w+|RE_BENCH_CACHE"
    r"|(?:CUDA|NCCL|CUDNN|CUBLAS|ROCR|HIP|HSA|MIOPEN|TORCH|TORCHINDUCTOR|PYTORCH|TRITON|XLA|JAX)_\w+"
    r"|NVIDIA_(?:VISIBLE_DEVICES|DRIVER_CAPABILITIES|TF32_OVERRIDE)|TF_(?:CPP|ENABLE|FORCE)_\w+"
    r"|(?:OMP|MKL|OPENBLAS|NUMEXPR|KMP)_\w+|CARGO_HOME|RUSTUP_HOME|RUSTUP_TOOLCHAIN"
    r"|HF_(?:HUB_DISABLE_\w+|HOME|HUB_CACHE|DATASETS_CACHE|HUB_OFFLINE|DATASETS_OFFLINE|ENDPOINT)|TRANSFORMERS_(?:CACHE|OFFLINE)"
    r"|TOKENIZERS_PARALLELISM|XDG_(?:CACHE|CONFIG|DATA)_HOME|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    r"|(?i:https?_proxy|all_proxy|no_proxy)"
)
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)S?(?:_|$)|APIKEY", re.IGNORECASE
)
_PASSWORD_IN_ADDRESS = re.compile(r"://[^/@\s]+@")


def run_command(
    command: Sequence[str],
    directory: str,
    environment: Mapping[str, str],
    outputs: tuple[BinaryIO, BinaryIO],
    *,
    timeout_s: float,
    show: Callable[[str, str], None] | None = None,
) -> tuple[int | None, str]:
    """Run a command until it ends or its time is up; the processes of its group end with it.

    Args:
        command: the program and its arguments.
        directory: where it runs.
        environment: all of its variables.
        outputs: the files for stdout and stderr; it is stopped when they have more than 1 GiB.
        timeout_s: after which it is stopped.
        show: called with ``stdout`` or ``stderr`` and each line, as it is written.

    Returns:
        The exit status, negative for a signal, None if it was stopped; and ``ended``, ``timeout`` or ``too long``.

    Raises:
        OSError: if it cannot be started.
    """
    streams = {name: output.fileno() for name, output in zip(("stdout", "stderr"), outputs, strict=True)}
    live = [LiveOutput(name, file, show) for name, file in streams.items()] if show else []
    process = subprocess.Popen(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=streams["stdout"],
        stderr=streams["stderr"],
        start_new_session=True,
    )
    deadline = time.monotonic() + timeout_s
    ended = "ended"
    try:
        while ended == "ended" and not _wait(process, _POLL_S):
            for output in live:
                output.poll()
            if time.monotonic() >= deadline:
                ended = "timeout"
            elif sum(os.fstat(file).st_size for file in streams.values()) > _GIB:
                ended = "too long"
        if ended != "ended":
            _signal_group(process.pid, signal.SIGTERM)
            _wait(process, _GRACE_S)
    finally:
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()
    for output in live:
        output.poll(last=True)
    return process.returncode if ended == "ended" else None, ended


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Tell whether a process ends in time; it is not reaped, so that its group's number is not used again meanwhile."""
    deadline = time.monotonic() + timeout_s
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.005)
    return True


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def end_processes_of_run(run: str) -> None:
    """Kill what a killed agent of the same run has left behind, and mark what is started from now on."""
    setting = f"{_RUN_VARIABLE}={run}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(process.name) != os.getpid() and setting in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
    os.environ[_RUN_VARIABLE] = run


class LiveOutput:
    """Follows a file that a script writes to, and shows each line as it comes; of much output only the end."""

    def __init__(self, name: str, file: int, show: Callable[[str, str], None]) -> None:
        self._name, self._file, self._show = name, file, show
        self._read, self._rest = 0, b""

    def poll(self, *, last: bool = False) -> None:
        """Show the lines that were finished since the last time; with ``last`` also one that has no end."""
        size = os.fstat(self._file).st_size
        if (skipped := size - self._read - _SHOWN_BYTES) > 0:
            self._show(self._name, f"[... {len(self._rest) + skipped} bytes not shown ...]")
            self._read, self._rest = self._read + skipped, b""
        data = os.pread(self._file, size - self._read, self._read)
        self._read += len(data)
        *lines, self._rest = re.split(rb"\r?\n|\r", self._rest + data)
        if self._rest and (last or len(self._rest) > _SHOWN_BYTES):
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._show(self._name, printable(line.decode(errors="replace")))


def in_bubblewrap(
    command: Sequence[str], workspace: str, read_only: Sequence[str], environment: Mapping[str, str]
) -> list[str]:
    """Return a command that runs another one in namespaces of its own, where read-only files are mounted read-only.

    Args:
        command: the other one.
        workspace: a directory that it cannot rename; its absolute path without links, as of all paths here.
        read_only: files and directories that it can neither change nor rename, nor the directories above them.
        environment: its variables; bwrap itself gets none, so that none of them makes it load something.
    """
    words = [_system_program("bwrap") or "bwrap", "--unshare-pid", "--unshare-ipc", "--die-with-parent"]
    words += ["--cap-drop", "ALL"]
    if os.geteuid() == 0:
        words += [part for capability in _ROOT_MAY for part in ("--cap-add", capability)]
    words += ["--bind", "/", "/", "--dev", "/dev", "--bind-try", "/dev/shm", "/dev/shm"]  # noqa: S108
    for pattern in _ACCELERATORS:
        words += [part for path in sorted(Path("/dev").glob(pattern)) for part in ("--dev-bind-try", *[str(path)] * 2)]
    mounts = {str(above): "--bind" for path in (workspace, *read_only) for above in Path(path).parents[:-1]}
    mounts |= dict.fromkeys(read_only, "--ro-bind") | {workspace: "--bind"}
    for path in sorted(mounts, key=lambda path: path.count("/")):
        words += [mounts[path], path, path]
    for path in _CARRY_OUT_COMMANDS:
        if Path(path).exists() and path not in mounts:
            words += ["--tmpfs", path] if Path(path).is_dir() else ["--ro-bind", os.devnull, path]
    words += ["--proc", "/proc"]
    words += [part for name, value in environment.items() for part in ("--setenv", name, value)]
    return [*words, "--", *command]


@functools.cache
def bubblewrap_works() -> bool:
    """Tell whether bubblewrap is installed and permitted."""
    if _system_program("bwrap") is None:
        return False
    command = in_bubblewrap(["true"], "/usr", ["/usr/bin"], {"PATH": os.defpath})
    try:
        return subprocess.run(command, capture_output=True, timeout=_PROBE_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _system_program(name: str) -> str | None:
    """Return the absolute path of a program of the system; scripts may write into directories of ``PATH``."""
    return shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")


def script_environment(
    environment: Mapping[str, str], secrets: Iterable[str] = (), passed: Iterable[str] = ()
) -> dict[str, str]:
    """Return the variables that a script gets: those that programs commonly need, and what the operator names.

    Args:
        environment: that of the agent.
        secrets: values that no variable may hold, whatever its name is; those of a few characters do not count.
        passed: names of further variables.
    """
    values = [secret for secret in secrets if len(secret) >= MIN_SECRET_CHARS]
    names = set(passed)
    return {
        name: value
        for name, value in environment.items()
        if (name in names or _is_harmless(name, value)) and not any(secret in value for secret in values)
    }


def _is_harmless(name: str, value: str) -> bool:
    return bool(_PASSED.fullmatch(name) and not _SECRET_NAME.search(name) and not _PASSWORD_IN_ADDRESS.search(value))
