"""The files of a task that are made from templates: ``instructions.md`` and ``Dockerfile``.

They are checked in, since agents, images and exports take them as they are; ``re-bench check`` says when one is stale,
and ``--fix`` writes it. They are rendered in a process of its own, which imports the task's ``score.py``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import run_program
from re_bench.task.discovery import open_task, repository_of_tasks
from re_bench.task.interface import load_task

if TYPE_CHECKING:
    from re_bench.task.discovery import TaskFolder

INSTRUCTIONS = "instructions.md.j2"
"""The template of the instructions, in the task's folder: a Jinja template with ``profiles``, ``manifest``, and as
``constants`` the task's module ``profiles``."""

_DOCKERFILE = Path(__file__).with_name("template") / "Dockerfile.j2"


def generated_files(folder: TaskFolder) -> dict[Path, str]:
    """Return the text of each generated file of a task, by its path.

    Raises:
        UsageError: if a template cannot be rendered.
    """
    status, output = run_program(["-P", "-m", __name__, str(folder.directory)], capture=True)
    try:
        result = json.loads(output)
    except ValueError:
        raise UsageError(f"{folder.directory}: rendering its templates ended with exit status {status}") from None
    if "error" in result:
        raise UsageError(result["error"])
    return {folder.directory / name: text for name, text in result.items()}


def write_generated_files(folder: TaskFolder) -> None:
    """Write the generated files of a task.

    Raises:
        UsageError: as :func:`generated_files`.
    """
    for path, text in generated_files(folder).items():
        path.write_text(text, encoding="utf-8")


def render(folder: TaskFolder) -> dict[str, str]:
    """Return the text of each generated file of a task, by its name.

    Raises:
        UsageError: if a template cannot be rendered.
    """
    import jinja2  # noqa: PLC0415 - which only authors need

    environment = jinja2.Environment(  # noqa: S701 - the output is Markdown and a Dockerfile, not HTML
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = lambda value: f"{value:,}"
    environment.filters["short"] = lambda value: f"{value:.2g}".replace("e+", "e")
    source = folder.directory / INSTRUCTIONS
    repository = repository_of_tasks(folder.directory.parent) is not None
    dockerfile = environment.from_string(_DOCKERFILE.read_text(encoding="utf-8"))
    files = {"Dockerfile": dockerfile.render(name=folder.name, manifest=folder.manifest, repository=repository)}
    if source.is_file():
        profiles = load_task(folder).profiles
        constants = sys.modules.get(f"{folder.name}.profiles")
        try:
            template = environment.from_string(source.read_text(encoding="utf-8"))
            text = template.render(profiles=profiles, constants=constants, manifest=folder.manifest)
        except (jinja2.TemplateError, KeyError, TypeError, ValueError) as error:
            line = f":{error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
            raise UsageError(f"{source}{line}: cannot be rendered: {type(error).__name__}: {error}") from None
        files["instructions.md"] = text
    return files


def main() -> None:
    """Print the generated files of the task in the directory of the command line as JSON, or ``error``."""
    try:
        result = render(open_task(Path(sys.argv[1])))
    except ReBenchError as error:
        result = {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a task's code is a problem to report
        result = {"error": f"{sys.argv[1]}: {type(error).__name__}: {error}"}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
