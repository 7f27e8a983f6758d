"""The files of a task that are made from templates: ``instructions.md`` and ``Dockerfile``.

They are checked in, since agents, images and exports take them as they are; ``re-bench check`` says when one is stale,
and ``--fix`` writes it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import UsageError
from re_bench.task.discovery import repository_of_tasks
from re_bench.task.interface import load_task

if TYPE_CHECKING:
    from re_bench.task.discovery import Task as TaskFolder

INSTRUCTIONS = "instructions.md.j2"
"""The template of the instructions, in the task's folder; a Jinja template with ``profiles``, ``manifest``, and as
``constants`` the task's module ``profiles``."""

_DOCKERFILE = Path(__file__).with_name("template") / "Dockerfile.j2"


def generated_files(folder: TaskFolder) -> dict[Path, str]:
    """Return the text of each generated file of a task, by its path.

    Raises:
        UsageError: if a template cannot be rendered.
    """
    import jinja2  # noqa: PLC0415 - which only authors need

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )  # the output is Markdown and a Dockerfile, not HTML
    environment.filters["number"] = lambda value: f"{value:,}"
    environment.filters["short"] = lambda value: f"{value:.2g}".replace("e+", "e")
    source, files = folder.directory / INSTRUCTIONS, {}
    repository = repository_of_tasks(folder.directory.parent) is not None
    try:
        template = environment.from_string(_DOCKERFILE.read_text(encoding="utf-8"))
        files[folder.directory / "Dockerfile"] = template.render(
            name=folder.name, manifest=folder.manifest, repository=repository
        )
        if source.is_file():
            template = environment.from_string(source.read_text(encoding="utf-8"))
            profiles = load_task(folder).profiles
            constants = sys.modules.get(f"{folder.name}.profiles")
            text = template.render(profiles=profiles, constants=constants, manifest=folder.manifest)
            files[folder.directory / "instructions.md"] = text
    except (jinja2.TemplateError, KeyError, TypeError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f"{source}:{line}" if line else str(source)
        raise UsageError(f"{where}: cannot be rendered: {type(error).__name__}: {error}") from None
    return files


def write_generated_files(folder: TaskFolder) -> None:
    """Write the generated files of a task.

    Raises:
        UsageError: as :func:`generated_files`.
    """
    for path, text in generated_files(folder).items():
        path.write_text(text, encoding="utf-8")
