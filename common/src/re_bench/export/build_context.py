"""An agent's image as a directory that builds by itself: the task's Dockerfile, and what it copies.

A task's Dockerfile builds from the repository's root, or of a task elsewhere from its own directory, with a laid-out
workspace as a second context of the name ``workspace``. Here both lie beside it: files under their names there, the
workspace in ``workspace/``.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError, UsageError
from re_bench.export.files import copy_file, copy_tree, write_text
from re_bench.task.check import SHOWN_TO_AGENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from re_bench.task.discovery import Task

WORKSPACE_CONTEXT = "workspace"
"""The second context's name, and the directory that takes its place."""

_COPY = re.compile(r"(COPY|ADD)\s", re.IGNORECASE)
_STAGE = re.compile(r"FROM\s.*\sAS\s+(?P<name>\S+)\s*$", re.IGNORECASE)
_MOUNT = re.compile(r"--mount=(?P<options>\S+)")


@dataclass
class _Context:
    """What a Dockerfile needs besides itself."""

    files: list[PurePosixPath] = field(default_factory=list)
    """Files and directories, relative to where it is built from."""
    stages: set[str] = field(default_factory=set)
    workspace: bool = False
    """Whether it copies the workspace."""


def write_build_context(task: Task, directory: Path, workspace: Path, heading: str) -> None:
    """Write ``Dockerfile``, with ``heading`` as its first lines, and the files that it copies into ``directory``.

    Where it copies the workspace, the files of the laid-out ``workspace`` are among them.

    Raises:
        UsageError: if the task has no Dockerfile, or that cannot be built from what is here.
        ReBenchError: if it copies what no agent may see.
        OSError: if something cannot be written.
    """
    path = task.directory / "Dockerfile"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        reason = f"{error.strerror}; an export takes the agent's image from it"
        raise UsageError(f"{path}: {reason}: write one as docs/task-authors.md says") from None
    context = _Context()
    lines = [_rewritten(line, path, context) for line in _instructions(text)]
    alone = all((task.directory / name).exists() for name in context.files)
    root = task.directory if alone else task.directory.parent.parent
    for name in dict.fromkeys(context.files):
        _refuse_hidden(task, root, name)
        _copy(root, name, directory, path)
    if context.workspace:
        copy_tree(workspace, directory / WORKSPACE_CONTEXT)
    write_text(directory / "Dockerfile", heading + "\n".join(lines) + "\n")


def _instructions(text: str) -> Iterator[str]:
    """Yield what is in a Dockerfile, each instruction with its continuation lines; comments in front are left out."""
    pending: list[str] = []
    begun = False
    for line in text.splitlines():
        begun = begun or (bool(line.strip()) and not line.startswith("#"))
        if not begun:
            continue
        pending.append(line)
        if line.startswith("#") or not line.rstrip().endswith("\\"):
            yield "\n".join(pending)
            pending = []
    if pending:
        yield "\n".join(pending)


def _rewritten(line: str, path: Path, context: _Context) -> str:
    """Return an instruction as it stands in the export; what it needs is added to ``context``."""
    if (stage := _STAGE.match(line)) is not None:
        context.stages.add(stage["name"])
    if _COPY.match(line):
        return _rewritten_copy(line, path, context)
    for mount in _MOUNT.finditer(line):
        options = dict(part.partition("=")[::2] for part in mount["options"].split(","))
        source = options.get("source", options.get("src"))
        if options.get("type", "bind") != "bind":
            continue
        if "from" in options and options["from"] not in context.stages:
            raise UsageError(f"{path}: a mount from {options['from']!r} cannot be exported; copy files instead")
        if "from" not in options and source is not None:
            context.files.append(PurePosixPath(source))
    return line


def _rewritten_copy(line: str, path: Path, context: _Context) -> str:
    verb, *words = shlex.split(line.replace("\\\n", " "))
    flags = [word for word in words if word.startswith("--")]
    *sources, target = [word for word in words if not word.startswith("--")]
    origin = next((flag.removeprefix("--from=") for flag in flags if flag.startswith("--from=")), None)
    if origin is None:
        context.files += [PurePosixPath(source) for source in sources]
        return line
    if origin == WORKSPACE_CONTEXT:
        context.workspace = True
        kept = [flag for flag in flags if not flag.startswith("--from=")]
        inside = [f"{PurePosixPath(WORKSPACE_CONTEXT) / source}/" if source == "." else
                  str(PurePosixPath(WORKSPACE_CONTEXT) / source) for source in sources]  # fmt: skip
        return " ".join([verb, *kept, *inside, target])
    if origin not in context.stages and not re.search(r"[/:$]", origin):
        raise UsageError(f"{path}: COPY --from={origin}: there is no such stage, and no such context in an export")
    return line


def _refuse_hidden(task: Task, root: Path, name: PurePosixPath) -> None:
    own = PurePosixPath(task.directory.relative_to(root).as_posix())
    tasks = own.parent
    shown = [own / part for part in SHOWN_TO_AGENTS]
    if name.is_absolute() or ".." in name.parts or tasks.is_relative_to(name):
        raise ReBenchError(f"{task.name}: the Dockerfile copies {name}, which is more than an agent may see")
    if name.is_relative_to(tasks) and not any(name.is_relative_to(part) for part in shown):
        raise ReBenchError(
            f"{task.name}: the Dockerfile copies {name}; of a task an agent may see {_listed(SHOWN_TO_AGENTS)} alone"
        )


def _copy(root: Path, name: PurePosixPath, directory: Path, dockerfile: Path) -> None:
    source = root / name
    if source.is_dir():
        copy_tree(source, directory / name)
    elif source.is_file():
        copy_file(source, directory / name)
    else:
        raise UsageError(f"{dockerfile}: {name} is not in {root}; export from a checkout of the repository")


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
