"""Find Docker, Podman or Buildah, build images, run programs in images, and create a base image."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

KINDS = ("docker", "podman", "buildah")
"""Supported container engines, in order of preference."""
CAPABILITIES = ("SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE")
"""Capabilities that a container needs for bubblewrap's namespaces and loopback, and for measuring a sandbox's files."""
SECURITY = {
    "docker": ("seccomp=unconfined", "systempaths=unconfined"),
    "podman": ("unmask=ALL",),
}
"""Security options of a container that allow bubblewrap to create namespaces and mount ``/proc``."""
DEBIAN_BASE = "localhost/re-bench/debian-base:bookworm"
OWN_AUTHORITIES = Path("/usr/local/share/ca-certificates")
_ANSWER_S = 20
_END_LINES = 15


class EngineError(Exception):
    """No container engine was found, or a command of the engine failed."""


@dataclass(frozen=True)
class Build:
    """The inputs of an image's build."""

    dockerfile: Path
    context: Path
    arguments: Mapping[str, str] = field(default_factory=dict)
    contexts: Mapping[str, Path] = field(default_factory=dict)
    """Named build contexts, used by ``COPY --from`` and ``RUN --mount``."""
    cached: bool = True
    """Whether to use the engine's layer cache."""


@dataclass(frozen=True)
class Engine:
    """A command that builds images and, except for Buildah, runs containers."""

    command: str
    kind: str
    """One of :data:`KINDS`."""

    @property
    def runs_containers(self) -> bool:
        """Whether the engine isolates programs. Buildah does not; it only runs programs on an image's files."""
        return self.kind != "buildah"

    def build(self, build: Build, tags: Sequence[str], log: Path) -> None:
        """Build an image; write the engine's output to ``log``.

        Raises:
            EngineError: if the build fails; the message contains the end of the log.
        """
        with log.open("w", encoding="utf-8") as output:
            command = [self.command, *self.build_options(build), *(f"--tag={tag}" for tag in tags), str(build.context)]
            environment = os.environ | {"DOCKER_BUILDKIT": "1"}
            done = subprocess.run(command, stdout=output, stderr=output, env=environment, check=False)
        if done.returncode != 0:
            end = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_END_LINES:])
            raise EngineError(f"{build.dockerfile}: {self.command} build exited with {done.returncode}; {log}:\n{end}")

    def build_options(self, build: Build) -> list[str]:
        """Return the engine's arguments for a build, without tags and context."""
        options = ["bud", "--layers", "--isolation", "chroot"] if self.kind == "buildah" else ["build"]
        ignored = build.dockerfile.with_name(f"{build.dockerfile.name}.dockerignore")
        if self.kind != "docker" and ignored.is_file():  # Docker finds the file by itself
            options += ["--ignorefile", str(ignored)]
        options += [*([] if build.cached else ["--no-cache"]), "--file", str(build.dockerfile)]
        options += [f"--build-arg={name}={value}" for name, value in build.arguments.items()]
        return [*options, *(f"--build-context={name}={place}" for name, place in build.contexts.items())]

    def run(
        self,
        image: str,
        command: Sequence[str],
        *,
        text: str = "",
        options: Sequence[str] = ("--network=none",),
        limit_s: float = 600,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command instead of the entry point in a temporary container, as the image's user.

        ``text`` is the input on stdin. ``options`` are for the engine's command ``run``; Buildah ignores them and uses
        the machine's network.

        Raises:
            EngineError: if the command times out.
        """
        try:
            if not self.runs_containers:
                with self._files_of(image) as container:
                    arguments = [self.command, "run", "--isolation", "chroot", container, "--", *command]
                    return _run(arguments, text, limit_s)
            first, *rest = command
            arguments = [self.command, "run", "--rm", "--interactive", *options, f"--entrypoint={first}", image, *rest]
            return _run(arguments, text, limit_s)
        except subprocess.TimeoutExpired:
            raise EngineError(f"{image}: {' '.join(command)[:80]}: timeout of {limit_s:g} s") from None

    @contextmanager
    def _files_of(self, image: str) -> Iterator[str]:
        """Yield the name of a Buildah container with an image's files."""
        container = self.ask("from", image).strip()
        try:
            yield container
        finally:
            self.ask("rm", container)

    @property
    def nested_sandbox(self) -> list[str]:
        """The options of the engine's ``run`` that allow sandboxes inside a container."""
        security = [f"--security-opt={option}" for option in SECURITY[self.kind]]
        return [*(f"--cap-add={name}" for name in CAPABILITIES), *security]

    def size(self, image: str) -> int:
        """Return the size of an image in bytes, including shared layers.

        Raises:
            EngineError: if the image does not exist.
        """
        if self.runs_containers:
            return int(self.ask("image", "inspect", "--format", "{{.Size}}", image))
        with self._files_of(image) as container:  # Buildah reports only rounded sizes
            usage = subprocess.run(["du", "-sb", self.ask("mount", container).strip()], capture_output=True, check=True)
        return int(usage.stdout.split()[0])

    def ask(self, *arguments: str) -> str:
        """Run the engine with these arguments, and return its output.

        Raises:
            EngineError: if the command fails.
        """
        done = subprocess.run([self.command, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise EngineError(f"{self.command} {' '.join(arguments)}: {done.stderr.strip() or done.returncode}")
        return done.stdout


def _run(command: Sequence[str], text: str, limit_s: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=limit_s, check=False)


def find_engine(command: str | None) -> Engine:
    """Return the engine with this command, or the first working engine if ``command`` is None.

    Raises:
        EngineError: if no engine was found.
    """
    for candidate in [command] if command else KINDS:
        path = shutil.which(candidate)
        kind = next((kind for kind in KINDS if kind in Path(candidate).name), None)
        if path and kind and (command or kind != "docker" or _daemon_answers(path)):
            return Engine(path, kind)
    if command:
        raise EngineError(f"{command}: not found, or its name contains none of: {', '.join(KINDS)}")
    raise EngineError(
        "no docker with a running daemon, no podman and no buildah; "
        "run: sudo apt-get install buildah (or your system's equivalent)"
    )


def _daemon_answers(docker: str) -> bool:
    try:
        return subprocess.run([docker, "info"], capture_output=True, timeout=_ANSWER_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def ensure_debian_base(engine: Engine, log: Path) -> str:
    """Create the image :data:`DEBIAN_BASE` with debootstrap unless it exists, and return its name.

    The image is for machines without access to a registry. It contains Debian 12 and Python 3.11, and trusts the
    certificates in this machine's :data:`OWN_AUTHORITIES`.

    Raises:
        EngineError: if this process is not root, debootstrap is not installed, or a step fails (see ``log``).
    """
    try:
        engine.ask("inspect", "--type", "image", DEBIAN_BASE)
    except EngineError:
        if os.geteuid() != 0 or shutil.which("debootstrap") is None:
            raise EngineError("the base needs root and debootstrap; run: sudo apt-get install debootstrap") from None
    else:
        return DEBIAN_BASE
    with tempfile.TemporaryDirectory(prefix="re-bench-base-") as place:
        root, context = Path(place) / "root", Path(place) / "context"
        context.mkdir()
        packages = "--include=ca-certificates,python3,python3-venv"
        with log.open("w", encoding="utf-8") as output:
            for command in (
                ["debootstrap", "--variant=minbase", packages, "bookworm", str(root)],
                ["cp", "--recursive", "--no-target-directory", str(OWN_AUTHORITIES), f"{root}{OWN_AUTHORITIES}"],
                ["chroot", str(root), "update-ca-certificates"],
                ["chroot", str(root), "apt-get", "clean"],
                ["tar", "--directory", str(root), "--create", "--file", str(context / "base.tar"), "."],
            ):
                status = subprocess.run(command, stdout=output, stderr=output, check=False).returncode
                if status != 0:
                    raise EngineError(f"{command[0]} exited with {status}; see {log}")
        (context / "Dockerfile").write_text('FROM scratch\nADD base.tar /\nCMD ["bash"]\n', encoding="utf-8")
        engine.build(Build(context / "Dockerfile", context), [DEBIAN_BASE], log)
    return DEBIAN_BASE
