"""List the container images: two for each task (environment and verifier), the server, and the MLAgentBench agent."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

TOP = Path(__file__).resolve().parents[1]
Kind = Literal["task", "verifier", "server", "agent"]


@dataclass(frozen=True)
class Image:
    """A container image of this repository."""

    name: str
    """The part of the image's tags between ``re-bench/`` and the version."""
    kind: Kind
    dockerfile: Path
    locks: tuple[str, ...]
    """Names of the lock files of the image's packages."""
    tasks: tuple[str, ...] = ()
    """Names of the tasks in the image."""

    @property
    def has_torch(self) -> bool:
        """Whether the Dockerfile installs torch."""
        return "torch" in self.locks

    def tag(self, version: str) -> str:
        """Return the image's tag for a version."""
        return f"re-bench/{self.name}:{version}"


def all_images(tasks: Sequence[str]) -> dict[str, Image]:
    """Return all images by name; the images of ``tasks`` come first."""
    images = [_image_of_task(task) for task in tasks]
    file = TOP / "images" / "verifier.Dockerfile"
    images += [Image(f"verifier-{task}", "verifier", file, ("torch", "verifier"), (task,)) for task in tasks]
    images.append(Image("server", "server", TOP / "server" / "Dockerfile", ("torch", "server"), tuple(tasks)))
    images.append(Image("agent", "agent", TOP / "agents" / "mlab" / "Dockerfile", ("agent",)))
    return {image.name: image for image in images}


def _image_of_task(task: str) -> Image:
    file = TOP / "tasks" / task / "Dockerfile"
    return Image(task, "task", file, tuple(re.findall(r"locks/([\w-]+)\.txt /opt", file.read_text())), (task,))


def debian_packages(tasks: Sequence[str]) -> str:
    """Return the Debian packages in ``ARG PACKAGES=`` of tasks' Dockerfiles, separated by spaces."""
    texts = [(TOP / "tasks" / task / "Dockerfile").read_text() for task in tasks]
    return " ".join(" ".join(re.findall(r'^ARG PACKAGES="(.*)"$', text, re.MULTILINE)) for text in texts).strip()


def version() -> str:
    """Return the version of the core, which the images' tags contain."""
    text = (TOP / "common" / "pyproject.toml").read_text()
    return str(tomllib.loads(text)["project"]["version"])
