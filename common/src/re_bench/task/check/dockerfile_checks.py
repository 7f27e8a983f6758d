"""Checks of Dockerfiles: what they copy is there and may be seen, what they install is locked, the user is no root."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from re_bench.task.check.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from re_bench.task.check.problem import Note
    from re_bench.task.check.task_files import TaskFiles

HOME = "/home/agent"
"""Where agents find all that they find."""
SHOWN_TO_AGENTS = ("instructions.md", "starter", "baseline")
"""What an image may take of a task's directory."""

_INSTALL = re.compile(r"pip install ([^&\n]*)")
_LOCKED = (
    "--no-deps --require-hashes -r ",
    "-r /opt/locks/chosen-torch",
    "--no-deps --no-build-isolation --prefix /installed",
)
"""What may follow ``pip install``: a lock file, the chosen build of torch, or wheels of this repository."""
_LOCK = re.compile(r"images/locks/([\w-]+)\.txt")


@dataclass(frozen=True)
class Instruction:
    """An instruction of a Dockerfile, its continuation lines put together."""

    line: int
    """From 1."""
    text: str

    @property
    def word(self) -> str:
        """What it does: FROM, COPY, RUN ..."""
        return self.text.split(maxsplit=1)[0].upper() if self.text.split() else ""

    @property
    def copied(self) -> tuple[str | None, list[str], str]:
        """Of a COPY or ADD: the stage or context that it copies from, or None; the sources; the target."""
        try:
            words = shlex.split(self.text)[1:]
        except ValueError:  # a quotation that is not closed
            words = self.text.split()[1:]
        origin = next((word.removeprefix("--from=") for word in words if word.startswith("--from=")), None)
        *sources, target = [word for word in words if not word.startswith("--")] or [""]
        return origin, sources, target


def instructions(text: str) -> list[Instruction]:
    """Return the instructions of a Dockerfile."""
    found: list[Instruction] = []
    pending: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or (not pending and not line.strip()):
            continue
        pending.append(line.rstrip().removesuffix("\\"))
        if not line.rstrip().endswith("\\"):
            found.append(Instruction(number - len(pending) + 1, " ".join(" ".join(pending).split())))
            pending = []
    return found


def copies_and_installs(path: Path, text: str, root: Path, pins: dict[str, str]) -> Iterator[Problem]:
    """Yield what a Dockerfile copies that is not there or does not reach the build, and what it installs unlocked.

    Args:
        path: the Dockerfile.
        text: what it says, with arguments of the build filled in.
        root: the directory that it is built from.
        pins: versions of ``constraints.txt``; torch's is compared.
    """
    ignored = next((file for file in (path.with_name(f"{path.name}.dockerignore"), root / ".dockerignore")
                    if file.is_file()), None)  # fmt: skip
    kept = [line[1:] for line in ignored.read_text().splitlines() if line.startswith("!")] if ignored else None
    for step in instructions(text):
        if step.word in ("COPY", "ADD"):
            origin, sources, _target = step.copied
            for source in sources if origin is None else ():
                if not (root / source).exists():
                    yield Problem(path, step.line, f"copies {source}, which is not in {root.name}/: correct the name")
                elif kept is not None and not any((root / source).match(one) or source.startswith(one) for one in kept):
                    yield Problem(path, step.line, f"copies {source}, which .dockerignore leaves out: add !{source}")
        for install in _INSTALL.findall(step.text):
            if not install.startswith(_LOCKED):
                what = f"installs {install.strip()} without a lock file"
                yield Problem(path, step.line, f"{what}: pip install --no-deps --require-hashes -r /opt/locks/NAME.txt")
        if step.text.startswith("ARG TORCH=") and step.text != (wanted := f"ARG TORCH=torch=={pins.get('torch')}"):
            yield Problem(path, step.line, f"{step.text} is not the pin of constraints.txt: write {wanted}")


def dockerfile_holds(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield what is wrong with the Dockerfile of a task."""
    path = files.directory / "Dockerfile"
    if not (text := files.text(path)):
        return
    root, own = (files.top, f"tasks/{files.name}/") if files.top else (files.directory, "")
    pins = pinned(files.text(files.top / "constraints.txt")) if files.top else {}
    yield from copies_and_installs(path, text, root, pins)
    steps = instructions(text)
    if not any(step.text.startswith("ARG BASE=") for step in steps):
        yield Problem(path, 1, "has no base image as a build argument: ARG BASE=..., and FROM ${BASE}")
    users = [step for step in steps if step.word == "USER"]
    if not users or users[-1].text != "USER agent":
        line = users[-1].line if users else len(text.splitlines())
        yield Problem(path, line, "does not end as the user agent: add USER agent")
    for step in steps:
        if step.word in ("COPY", "ADD"):
            yield from _hidden_or_elsewhere(path, step, own)
    if not any(step.word == "COPY" and step.copied[0] == "workspace" for step in steps):
        yield Problem(path, 1, f"does not copy the workspace: COPY --from=workspace . {HOME}/solution/")


def _hidden_or_elsewhere(path: Path, step: Instruction, own: str) -> Iterator[Problem]:
    """Yield what an image takes that no agent may see, or puts outside of the agent's home."""
    origin, sources, target = step.copied
    if not sources:
        yield Problem(path, step.line, f"{step.word} has no source and target: write {step.word} SOURCE TARGET")
        return
    if origin is None:
        for source in sources:
            part = source.removeprefix(own).strip("/").partition("/")[0]
            if not (source.startswith("images/locks/") or (source.startswith(own) and part in SHOWN_TO_AGENTS)):
                shown = ", ".join(SHOWN_TO_AGENTS)
                yield Problem(path, step.line, f"copies {source}; agents may see {shown} of a task: leave it out")
    if (origin == "workspace" or (origin is None and not sources[0].startswith("images/locks/"))) and not (
        target.startswith(f"{HOME}/")
    ):
        yield Problem(path, step.line, f"copies to {target}: what agents find lies in {HOME}/")


def locks_of(text: str) -> list[str]:
    """Return the names of the lock files that a Dockerfile installs from."""
    return list(dict.fromkeys(_LOCK.findall("\n".join(step.text for step in instructions(text)))))


def pinned(constraints: str) -> dict[str, str]:
    """Return the versions of a file of pins, by package."""
    return {name: version for name, pin, version in (line.partition("==") for line in constraints.splitlines()) if pin}
