"""The command of Docker or Podman: finding it, asking it, and removing a container with it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from re_bench.processes import tree
from re_bench.sandbox.spec import SandboxUnavailableError

ENGINE = "RE_BENCH_CONTAINER_ENGINE"
"""The variable with the engine's command."""
IMAGE = "RE_BENCH_CONTAINER_IMAGE"
"""The variable with the image's name."""
ENGINES = ("docker", "podman")
"""The commands that are looked for, the first one first."""

_ANSWER_S = 20.0
_FIRST_S = 5.0
_REMOVAL_S = 30.0
_MONITOR_S = (1.0, 6.0)
"""How long Podman's monitor has to end by itself, and at most."""
_POLL_S = 0.02
_MONITOR = "conmon"


@dataclass(frozen=True)
class Engine:
    """A container engine on this machine, and the image that it is to run."""

    path: str
    """Of its command."""
    image: str

    @property
    def name(self) -> str:
        """The command's name."""
        return Path(self.path).name

    @property
    def podman(self) -> bool:
        """Whether it takes Podman's options; else Docker's."""
        return "podman" in self.name

    def ask(self, words: list[str], remedy: str) -> str:
        """Return what it prints on stdout when it is called with ``words``.

        Raises:
            SandboxUnavailableError: if it fails or takes too long, with ``remedy``.
        """
        try:
            answer = subprocess.run(
                [self.path, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_ANSWER_S,
                check=True,
            )
        except subprocess.TimeoutExpired:
            reason = f"gave no answer in {_ANSWER_S:g} s"
        except subprocess.CalledProcessError as error:
            reason = f"failed: {error.stderr.strip() or f'exit status {error.returncode}'}"
        except OSError as error:
            reason = f"cannot be run: {error.strerror}"
        else:
            return answer.stdout
        raise SandboxUnavailableError(f"no container sandbox: `{self.name} {' '.join(words)}` {reason}; {remedy}")

    def first_process(self, name: str) -> int | None:
        """Return the id of a process that has all of a container's below it, or None while there is none.

        Podman's monitor shows by its command line; Podman itself may take seconds to tell.
        """
        if self.podman:
            return next((pid for pid in _processes_with(name) if _program_of(pid) == _MONITOR), None)
        words = [self.path, "inspect", "--type", "container", "--format", "{{.State.Pid}}", name]
        with suppress(OSError, subprocess.SubprocessError, ValueError):
            answer = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_FIRST_S, check=True)
            return int(answer.stdout) or None
        return None

    def remove(self, name: str) -> None:
        """Remove the container, whatever state it is in; one that is gone is no error."""
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                [self.path, "rm", "--force", "--volumes", name],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_REMOVAL_S,
                check=False,
            )
        if self.podman:
            _end_monitor(name)


def find_engine() -> Engine:
    """Return the engine and the image that the environment names.

    Raises:
        SandboxUnavailableError: if there is no such engine, or no image is named.
    """
    command = os.environ.get(ENGINE)
    path = next(filter(None, map(shutil.which, [command] if command else ENGINES)), None)
    if path is None:
        raise SandboxUnavailableError(
            f"no container sandbox: {f'{command!r} (${ENGINE})' if command else ' or '.join(ENGINES)} not found; "
            "install Docker or Podman (`apt-get install podman catatonit` on Debian and Ubuntu), "
            "or choose another sandbox"
        )
    return Engine(path, _image(Path(path).name))


def _image(engine: str) -> str:
    image = os.environ.get(IMAGE, "")
    if not image or image.startswith("-"):
        reason = f"${IMAGE} is {image!r}, which is no image" if image else f"${IMAGE} is not set"
        raise SandboxUnavailableError(
            f"no container sandbox: {reason}; build the task's image with "
            f"`{engine} build -f tasks/<name>/Dockerfile -t re-bench/<name> .` and set it to re-bench/<name>"
        )
    return image


def _end_monitor(name: str) -> None:
    """End what Podman knows nothing of: monitor and first process, if its client was killed while it made them."""
    started = time.monotonic()
    while (monitors := _processes_with(name)) and time.monotonic() - started < _MONITOR_S[1]:
        time.sleep(_POLL_S)
        if time.monotonic() - started > _MONITOR_S[0]:
            for monitor in monitors:
                _first, *below = tree(monitor)
                for pid in below or [monitor]:  # the monitor last: what it started is found through it
                    with suppress(OSError):
                        os.kill(pid, signal.SIGKILL)


def _program_of(pid: int) -> str:
    """Return the name of the program that a process runs; nothing of one that has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    return ""


def _processes_with(word: str) -> list[int]:
    """Return the processes that have ``word`` on their command line."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if word.encode() in (process / "cmdline").read_bytes().split(b"\0"):
                pids.append(int(process.name))
    return pids
