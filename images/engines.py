"""Docker, Podman and Buildah: finding one, building with it, and running a program in an image; and a base image."""

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
"""In the order in which they are looked for."""
CAPABILITIES = ("SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE")
"""What bubblewrap needs in a container for namespaces and their loopback, and we to see what a sandbox has written."""
SECURITY = {
    "docker": ("seccomp=unconfined", "systempaths=unconfined"),
    "podman": ("unmask=ALL",),
}
"""What lets bubblewrap mount /proc in a container, besides."""
DEBIAN_BASE = "localhost/re-bench/debian-base:bookworm"
OWN_AUTHORITIES = Path("/usr/local/share/ca-certificates")
_ANSWER_S = 20
_END_LINES = 15


class EngineError(Exception):
    """No engine is here, or it did not do what it was asked to; the text says which and why."""


@dataclass(frozen=True)
class Build:
    """What an image is built from."""

    dockerfile: Path
    context: Path
    arguments: Mapping[str, str] = field(default_factory=dict)
    contexts: Mapping[str, Path] = field(default_factory=dict)
    """Further build contexts by name, which ``COPY --from`` and ``RUN --mount`` read."""
    cached: bool = True
    """Whether layers of earlier builds may be taken."""


@dataclass(frozen=True)
class Engine:
    """A command that builds images, and runs them unless it is Buildah."""

    command: str
    kind: str
    """One of :data:`KINDS`, which tells its options."""

    @property
    def runs_containers(self) -> bool:
        """Whether it gives a container walls; Buildah runs a program in an image's files without any."""
        return self.kind != "buildah"

    def build(self, build: Build, tags: Sequence[str], log: Path) -> None:
        """Build an image, with all that the engine says in ``log``.

        Raises:
            EngineError: if it fails; the text has the end of the log.
        """
        with log.open("w", encoding="utf-8") as output:
            command = [self.command, *self.build_options(build), *(f"--tag={tag}" for tag in tags), str(build.context)]
            environment = os.environ | {"DOCKER_BUILDKIT": "1"}
            done = subprocess.run(command, stdout=output, stderr=output, env=environment, check=False)
        if done.returncode != 0:
            end = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_END_LINES:])
            raise EngineError(f"{build.dockerfile}: {self.command} build ended with {done.returncode}; {log}:\n{end}")

    def build_options(self, build: Build) -> list[str]:
        """Return the words between the command and the tags."""
        words = ["bud", "--layers", "--isolation", "chroot"] if self.kind == "buildah" else ["build"]
        ignored = build.dockerfile.with_name(f"{build.dockerfile.name}.dockerignore")
        if self.kind != "docker" and ignored.is_file():  # which Docker finds by itself
            words += ["--ignorefile", str(ignored)]
        words += [*([] if build.cached else ["--no-cache"]), "--file", str(build.dockerfile)]
        words += [f"--build-arg={name}={value}" for name, value in build.arguments.items()]
        return [*words, *(f"--build-context={name}={place}" for name, place in build.contexts.items())]

    def run(
        self,
        image: str,
        command: Sequence[str],
        *,
        text: str = "",
        options: Sequence[str] = ("--network=none",),
        limit_s: float = 600,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a new container, which is removed after it, as the image's own user.

        With Buildah, ``options`` are left out, and the machine's network is there.

        Args:
            image: its name.
            command: program and arguments; the image's entry point is not used.
            text: what the command reads on stdin.
            options: of ``run``.
            limit_s: seconds after which the engine's command is killed.

        Raises:
            EngineError: if that time is up.
        """
        try:
            if not self.runs_containers:
                with self._files_of(image) as container:
                    words = [self.command, "run", "--isolation", "chroot", container, "--", *command]
                    return _run(words, text, limit_s)
            first, *rest = command
            words = [self.command, "run", "--rm", "--interactive", *options, f"--entrypoint={first}", image, *rest]
            return _run(words, text, limit_s)
        except subprocess.TimeoutExpired:
            raise EngineError(f"{image}: {' '.join(command)[:80]} took more than {limit_s:g} s") from None

    @contextmanager
    def _files_of(self, image: str) -> Iterator[str]:
        """Yield the name of Buildah's container with the files of an image."""
        container = self.ask("from", image).strip()
        try:
            yield container
        finally:
            self.ask("rm", container)

    @property
    def nested_sandbox(self) -> list[str]:
        """The options of ``run`` with which our sandboxes work inside a container."""
        security = [f"--security-opt={option}" for option in SECURITY[self.kind]]
        return [*(f"--cap-add={name}" for name in CAPABILITIES), *security]

    def size(self, image: str) -> int:
        """Return the size of an image in bytes, with the layers that others have too.

        Raises:
            EngineError: if there is no such image.
        """
        if self.runs_containers:
            return int(self.ask("image", "inspect", "--format", "{{.Size}}", image))
        with self._files_of(image) as container:  # Buildah reports only rounded sizes
            usage = subprocess.run(["du", "-sb", self.ask("mount", container).strip()], capture_output=True, check=True)
        return int(usage.stdout.split()[0])

    def ask(self, *words: str) -> str:
        """Return what the engine prints when it is called with ``words``.

        Raises:
            EngineError: if it fails.
        """
        done = subprocess.run([self.command, *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise EngineError(f"{self.command} {' '.join(words)}: {done.stderr.strip() or done.returncode}")
        return done.stdout


def _run(words: Sequence[str], text: str, limit_s: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, input=text, capture_output=True, text=True, timeout=limit_s, check=False)


def find_engine(command: str | None) -> Engine:
    """Return the engine with this command, or the first that is here; a Docker whose daemon does not answer is not.

    Raises:
        EngineError: if there is none.
    """
    for candidate in [command] if command else KINDS:
        path = shutil.which(candidate)
        kind = next((kind for kind in KINDS if kind in Path(candidate).name), None)
        if path and kind and (command or kind != "docker" or _daemon_answers(path)):
            return Engine(path, kind)
    if command:
        raise EngineError(f"{command}: not found, or its name has none of: {', '.join(KINDS)}")
    raise EngineError(
        "no docker whose daemon answers, no podman and no buildah; "
        "type: sudo apt-get install buildah (or your equivalent)"
    )


def _daemon_answers(docker: str) -> bool:
    try:
        return subprocess.run([docker, "info"], capture_output=True, timeout=_ANSWER_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def ensure_debian_base(engine: Engine, log: Path) -> str:
    """Make the image :data:`DEBIAN_BASE` by debootstrap unless it is there, and return its name.

    It is Debian 12 with its Python 3.11, for a machine that reaches no registry of images, and trusts the authorities
    in this machine's :data:`OWN_AUTHORITIES` too.

    Raises:
        EngineError: if this is not root, there is no debootstrap, or a step fails; its output is in ``log``.
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
                    raise EngineError(f"{command[0]} ended with {status}; see {log}")
        (context / "Dockerfile").write_text('FROM scratch\nADD base.tar /\nCMD ["bash"]\n', encoding="utf-8")
        engine.build(Build(context / "Dockerfile", context), [DEBIAN_BASE], log)
    return DEBIAN_BASE
