"""A container of Docker or Podman as the sandbox, by the engine's command line.

The options are those of https://docs.docker.com/reference/cli/docker/container/run/ and
https://docs.podman.io/en/latest/markdown/podman-run.1.html. The container is no child of
ours: the engine's daemon (Docker) or monitor (Podman) holds it, so that a client which was
killed leaves it running, and only its name, which is drawn at random, finds it again.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.limits import Limits
from re_bench.processes import tree
from re_bench.sandbox import seccomp
from re_bench.sandbox.bubblewrap import mounts
from re_bench.sandbox.process import run
from re_bench.sandbox.spec import Launch, SandboxSpec, SandboxUnavailableError, base_environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
_PREFIX = "re-bench-"
_NOBODY = "65534:65534"  # below the 65536 ids that a rootless engine has by default
_MIB = 1 << 20
_GRACE_S = 60
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
_UNBOUNDED = ("discarded", "not supported and ignored")
"""What the engines' warnings say of a limit that the kernel does not hold."""


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


class Container:
    """A throw-away container of a task's image: read-only, without network, capabilities or root.

    ``$RE_BENCH_CONTAINER_IMAGE`` names the image, ``$RE_BENCH_CONTAINER_ENGINE`` the engine's command
    (default: the first of ``docker`` and ``podman`` that is on ``PATH``).
    """

    sessions = True
    sockets = True

    @property
    def name(self) -> str:
        """``container`` with the engine and the image, as far as they are set, and whose the filter is if not ours."""
        engine = os.environ.get(ENGINE) or next(filter(shutil.which, ENGINES), "no engine")
        kind = "container" if seccomp.available() else "container with the engine's filter"
        return f"{kind} ({Path(engine).name}, {os.environ.get(IMAGE) or 'no image'})"

    @property
    def python(self) -> str:
        """The image's own ``python3``."""
        return "python3"

    def probe(self) -> None:
        """Ask the engine for the image and run its Python in a container, once per process.

        Raises:
            SandboxUnavailableError: if there is no engine, its daemon does not answer, the image is missing
                or would be writable, or a container does not come up within its limits.
        """
        _probe(find_engine())

    def launch(self, program: Sequence[str], spec: SandboxSpec) -> Launch:
        """Return the engine's command line for ``program``; the clean-up removes the container.

        Raises:
            SandboxUnavailableError: if engine or image are not set, or a path cannot be mounted.
        """
        engine = find_engine()
        name = _PREFIX + secrets.token_hex(8)
        rules = seccomp.open_profile()
        options = [
            *_identity(name),
            *([] if spec.first else ["--init"]),
            *_privileges(engine, host_network=spec.host_network),
            *_bounds(engine, spec.limits, gpu=spec.gpu is not None),
            *_devices(engine, spec.gpu),
            *_mounts(engine, spec),
            *_environment(spec),
            *([] if rules is None else ["--security-opt", f"seccomp=/proc/self/fd/{rules}"]),
        ]
        command = [engine.path, "run", *options, engine.image, *program]
        # A name is used once, so it is removed once: the engine takes its time to find nothing again.
        descriptors = () if rules is None else (rules,)
        return Launch(
            command,
            descriptors,
            cleanup=cache(partial(engine.remove, name)),
            first=partial(engine.first_process, name),
        )


@cache
def _probe(engine: Engine) -> None:
    engine.ask(["version"], f"start its daemon, see that you may use it, or set ${ENGINE} to another engine")
    remedy = (
        f"build it (`{engine.name} build -f tasks/<name>/Dockerfile -t {engine.image} .`) "
        f"or set ${IMAGE} to one that is there"
    )
    description = engine.ask(["image", "inspect", engine.image], remedy)
    _check_image(engine, description)
    _check_container(engine)


def _check_image(engine: Engine, description: str) -> None:
    """Refuse an image with volumes: they would be writable, and nothing bounds them."""
    try:
        image: dict[str, Any] = json.loads(description)[0]
        volumes = (image.get("Config") or {}).get("Volumes")
    except (ValueError, LookupError, AttributeError, TypeError):
        raise SandboxUnavailableError(
            f"no container sandbox: {engine.path} describes the image {engine.image} in an unknown form"
        ) from None
    if volumes:
        raise SandboxUnavailableError(
            f"no container sandbox: the image {engine.image} declares the volumes {', '.join(volumes)}, which a "
            "program could fill without bound; build it without VOLUME"
        )


def _check_container(engine: Engine) -> None:
    """Run Python in a container that reads a file of ours: mounts, limits and interpreter are there."""
    token = secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as directory:
        Path(directory).chmod(0o755)  # the container runs as another user
        file = Path(directory) / "token"
        file.write_text(token)
        backend = Container()
        program = [backend.python, "-I", "-c", "import sys; print(open(sys.argv[1]).read())", str(file)]
        finished = run(backend, program, SandboxSpec(read_only={directory: Path(directory)}, limits=Limits(wall_s=60)))
    problem = finished.stderr.strip() or finished.stopped or f"exit status {finished.status}"
    if finished.status != 0 or finished.stdout.strip() != token:
        raise SandboxUnavailableError(
            f"no container sandbox: {engine.path} cannot run {backend.python} of {engine.image} over a directory of "
            f"this machine ({problem}); the engine must run on this machine, the image must have {backend.python}"
        )
    if any(words in finished.stderr for words in _UNBOUNDED):
        raise SandboxUnavailableError(
            f"no container sandbox: the limits do not hold ({problem}); "
            "boot with the memory and pids cgroup controllers, for a rootless engine with cgroups v2"
        )


def _identity(name: str) -> Iterator[str]:
    yield from ("--rm", "--name", name, "--hostname", "sandbox")
    yield from ("--pull", "never", "--entrypoint", "", "--no-healthcheck", "--log-driver", "none")


def _privileges(engine: Engine, *, host_network: bool) -> Iterator[str]:
    yield from ("--network", "host" if host_network else "none", "--ipc", "private", "--cgroupns", "private")
    yield from ("--user", _NOBODY, "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only")
    if engine.podman:
        # Else it adds writable places whose size nobody bounds, and copies this machine's /etc/hosts.
        yield from ("--read-only-tmpfs=false", "--no-hosts")


def _bounds(engine: Engine, limits: Limits, *, gpu: bool) -> Iterator[str]:
    memory, space = f"{limits.memory_mib}m", f"{limits.space_mib}m"
    writable = f"rw,exec,nosuid,nodev,mode=1777,size={space}"
    yield from ("--tmpfs", f"/tmp:{writable}", "--shm-size", space)  # noqa: S108 - inside the container
    if engine.podman:
        yield from ("--tmpfs", f"/dev/shm:{writable}")  # noqa: S108 - without it, read-only as all else
        yield from ("--timeout", str(math.ceil(limits.wall_s) + _GRACE_S))  # in case we are gone by then
    yield from ("--memory", memory, "--memory-swap", memory, "--pids-limit", str(limits.processes))
    bounds = {"cpu": limits.cpu_s, "fsize": limits.file_mib * _MIB, "nofile": limits.open_files, "core": 0}
    if not gpu:  # CUDA reserves address space for all the memory there is
        bounds["data"] = limits.memory_mib * _MIB
    for kind, bound in bounds.items():
        yield from ("--ulimit", f"{kind}={bound}:{bound}")


def _devices(engine: Engine, gpu: str | None) -> Iterator[str]:
    if gpu:
        yield from ("--device", f"nvidia.com/gpu={gpu}") if engine.podman else ("--gpus", f"device={gpu}")


def _mounts(engine: Engine, spec: SandboxSpec) -> Iterator[str]:
    # Podman would fill an empty directory with what it is to hide.
    empty = ["tmpfs-size=4096", "tmpfs-mode=755", "ro", *(["notmpcopyup"] if engine.podman else [])]
    for mount in mounts(spec):
        if mount.outside is None:
            yield from ("--mount", _line("type=tmpfs", f"dst={mount.inside}", *empty))
        else:
            more = [] if mount.writable else ["readonly"]
            yield from ("--mount", _line("type=bind", f"src={mount.outside.absolute()}", f"dst={mount.inside}", *more))
    yield from ("--workdir", spec.directory)


def _line(*values: str) -> str:
    """Return the value of ``--mount``, a line of comma-separated values."""
    for value in values:
        if any(ord(character) < ord(" ") for character in value):
            path = value.partition("=")[2]
            raise SandboxUnavailableError(
                f"no container sandbox: {path!r} cannot be mounted because of a control character; rename it"
            )
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def _environment(spec: SandboxSpec) -> Iterator[str]:
    """Give every variable a value: the engines would fill in ours, and proxies from their settings."""
    own = base_environment("/tmp", spec.gpu)  # noqa: S108 - inside the container
    del own["PATH"]  # the image knows where its programs are
    silenced = {spelling: "" for name in _PROXIES for spelling in (name, name.upper())}
    for name, value in (silenced | own | dict(spec.environment)).items():
        yield from ("--env", f"{name}={value}")


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
