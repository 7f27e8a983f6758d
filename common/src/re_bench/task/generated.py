"""Generate a task's ``instructions.md`` and ``Dockerfile`` from templates.

The generated files are checked in, since agents, images and exports use them; ``re-bench check`` reports stale files,
and ``--fix`` rewrites them. A separate process renders the templates, because rendering imports the task's
``score.py``. The process also reports which services (:mod:`re_bench.task.services`) the task's class defines.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import run_program
from re_bench.task.discovery import open_task, repository_of_tasks
from re_bench.task.interface import load_task
from re_bench.task.services import defined_by

if TYPE_CHECKING:
    from re_bench.task.discovery import TaskFolder

INSTRUCTIONS = "instructions.md.j2"
"""The Jinja template of the instructions; its variables are ``profiles``, ``manifest``, and ``constants`` (the task's
module ``profiles``)."""

_DOCKERFILE = Path(__file__).with_name("template") / "Dockerfile.j2"


@dataclass(frozen=True)
class Generated:
    """A task's rendered templates and its services."""

    files: dict[str, str]
    """The text of each generated file by name."""
    services: list[str]
    """Names of the services that the task's class defines; empty if the task has no ``instructions.md.j2``."""


def generate(folder: TaskFolder) -> Generated:
    """Import a task's class and render its templates, in a separate process.

    Raises:
        UsageError: if the class cannot be imported or a template cannot be rendered.
    """
    status, output = run_program(["-P", "-m", __name__, str(folder.directory)], capture=True)
    try:
        result = json.loads(output)
    except ValueError:
        raise UsageError(f"{folder.directory}: rendering its templates failed with exit status {status}") from None
    if "error" in result:
        raise UsageError(result["error"])
    return Generated(**result)


def write_generated_files(folder: TaskFolder) -> None:
    """Write the generated files of a task.

    Raises:
        UsageError: as :func:`generate`.
    """
    for name, text in generate(folder).files.items():
        (folder.directory / name).write_text(text, encoding="utf-8")


def render(folder: TaskFolder) -> Generated:
    """Render the templates in this process.

    Raises:
        UsageError: if a template cannot be rendered.
    """
    import jinja2  # noqa: PLC0415 - only needed by authors

    environment = jinja2.Environment(  # noqa: S701 - the output is Markdown and a Dockerfile, not HTML
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = lambda value: f"{value:,}"
    environment.filters["short"] = lambda value: f"{value:.2g}".replace("e+", "e")
    source = folder.directory / INSTRUCTIONS
    repository = repository_of_tasks(folder.directory.parent) is not None
    dockerfile = environment.from_string(_DOCKERFILE.read_text(encoding="utf-8"))
    files = {"Dockerfile": dockerfile.render(name=folder.name, manifest=folder.manifest, repository=repository)}
    services = []
    if source.is_file():
        task = load_task(folder)
        profiles, services = task.profiles, defined_by(task)
        constants = sys.modules.get(f"{folder.name}.profiles")
        try:
            template = environment.from_string(source.read_text(encoding="utf-8"))
            text = template.render(profiles=profiles, constants=constants, manifest=folder.manifest)
        except (jinja2.TemplateError, KeyError, TypeError, ValueError) as error:
            line = f":{error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
            raise UsageError(f"{source}{line}: cannot be rendered: {type(error).__name__}: {error}") from None
        files["instructions.md"] = text
    return Generated(files, services)


def main() -> None:
    """Print the result of :func:`render` for the task directory in ``sys.argv[1]``, or the error, as JSON."""
    try:
        result = asdict(render(open_task(Path(sys.argv[1]))))
    except ReBenchError as error:
        result = {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - every failure of a task's code is reported
        result = {"error": f"{sys.argv[1]}: {type(error).__name__}: {error}"}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
