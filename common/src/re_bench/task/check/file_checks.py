"""Checks of a task's files: they are there and parse; the scorer's shape, canary lines, lists of files."""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from re_bench.task.canary import CANARY
from re_bench.task.check.problem import Problem, line_with
from re_bench.task.check.toml_text import keys_of, line_of
from re_bench.task.manifest import RECORDS, Records
from re_bench.task.manifest_file import ManifestError, read_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from re_bench.task.check.problem import Note
    from re_bench.task.check.task_files import TaskFiles

LONGEST_SCORER = 80
"""Lines: a scorer fits on a screen."""

_REQUIRED = {
    "task.toml": "the manifest",
    "instructions.md": "what agents are told",
    "README.md": "the page for maintainers",
    "pyproject.toml": "what pip installs",
    "Dockerfile": "the agent's image",
    "score.py": "the scorer",
    "reference": "our solution",
    "starter": "what agents find",
    "tests": "tests of the task",
}
_SHAPE = '\n\nif __name__ == "__main__":\n    main(measure, Path(__file__).parent)\n'
_TABLE = re.compile(r"(<!-- table: files -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)
_ABOUT = {
    "task.toml": "the manifest",
    "anchors.toml": "measured anchors, which `re-bench calibrate` writes",
    "records.toml": "what methods have reached",
    "instructions.md": "what agents are told",
    "Dockerfile": "the agent's image",
    "pyproject.toml": "what pip installs",
    "starter/": "what agents find",
    "baseline/": "over it: the starting solution, reward 0",
    "reference/": "over it: our solution, reward 1",
    "cheats/": "over it: what games the scorer; each says what it tries",
    "tools/": "what maintainers run",
    "tests/": "tests of the task",
}


def files_are_there(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield the files that every task has and this one lacks."""
    for name, what in _REQUIRED.items():
        if name != "task.toml" and not files.has(name):  # that one the manifest's own check misses
            yield Problem(files.directory / name, 1, f"is missing: {what}")
    if not files.has("baseline") and not (files.package / "prepare.py").is_file():
        yield Problem(
            files.directory / "baseline", 1, "is missing: the starting solution, unless prepare.py lays it out"
        )
    for name, what in (
        ("__init__.py", "the task's package"),
        ("grading.py", "the truth, and what is compared with it"),
    ):
        if not (files.package / name).is_file():
            yield Problem(files.package / name, 1, f"is missing: {what}")
    harness = files.package / "harness"
    if harness.is_dir() and not (harness / "__init__.py").is_file():
        yield Problem(harness / "__init__.py", 1, "is missing: without it the sandbox cannot import the harness")


def python_parses(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield the Python files with wrong syntax."""
    for path in files.python_files():
        if isinstance(error := files.tree(path), SyntaxError):
            yield Problem(path, error.lineno or 1, f"no valid Python: {error.msg}")


def scorer_has_its_shape(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield how the scorer differs from those of other tasks."""
    path = files.directory / "score.py"
    text, tree = files.text(path), files.tree(path)
    if not text or isinstance(tree, SyntaxError):
        return
    if (count := len(text.splitlines())) > LONGEST_SCORER:
        yield Problem(path, LONGEST_SCORER, f"{count} lines, {LONGEST_SCORER} at most: move something into the package")
    if not re.search(r"\braw = ", ast.get_docstring(tree) or ""):
        yield Problem(path, 1, "the docstring does not say what the raw score is: write 'raw = ..., lower is better'")
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    shapes = [ast.unparse(node).partition("\n")[0] for node in functions]
    if shapes != [wanted := "def measure(job: Job) -> Measured:"]:
        line = next((node.lineno for node, shape in zip(functions, shapes, strict=True) if shape != wanted), 1)
        yield Problem(
            path, line, f"a scorer has one function, {wanted.removesuffix(':')}: move others into the package"
        )
    if not text.endswith(_SHAPE):
        yield Problem(path, len(text.splitlines()), "a scorer ends with: main(measure, Path(__file__).parent)")


def canaries_are_there(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield the files without the line that keeps them out of training data."""
    named = [files.directory / "README.md", files.directory / "instructions.md"]
    for path in [*named, *files.python_files("reference")]:
        if path.is_file() and CANARY not in files.text(path):
            text = f"has no canary line ({CANARY[:16]}...): type re-bench check --fix"
            yield Problem(path, 1, text, partial(_add_canary, path))


def _add_canary(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    line = f"<!-- {CANARY} -->\n" if path.suffix == ".md" else f"# {CANARY}\n"
    first, newline, rest = text.partition("\n")
    path.write_text(f"{first}{newline}{line}{rest}" if first.startswith("#!") else line + text, encoding="utf-8")


def records_are_valid(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield what is wrong with ``records.toml``."""
    path = files.directory / RECORDS
    if not path.is_file():
        return
    try:
        records = read_table(path, Records)
    except ManifestError as error:
        for text in error.problems:
            rest = text.removeprefix(f"{path}: ")
            yield Problem(path, line_of(files.text(path), keys_of(rest.partition(": ")[0])), rest)
        return
    if files.manifest is not None:
        for name in sorted({record.profile for record in records.records} - set(files.manifest.profiles)):
            line = line_with(files.text(path), f'profile = "{name}"')
            yield Problem(path, line, f"task.toml has no profile {name!r}: correct the record or the manifest")


def lists_of_files_are_right(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield files that the README names in tables and that are not there, and a generated table that is stale."""
    path = files.directory / "README.md"
    text = files.text(path)
    for number, cell in _first_cells(_TABLE.sub(lambda match: "\n" * match[0].count("\n"), text)):
        for name in re.findall(r"`([\w./-]+)`", cell):
            if "." in name and not any(True for _ in files.directory.rglob(name.strip("/").removeprefix("../"))):
                yield Problem(path, number, f"there is no {name} in the task: correct the table")
    if with_file_table(text, files.directory) != text:
        line = line_with(text, "<!-- table: files -->")
        yield Problem(path, line, "the list of files is out of date: type re-bench check --fix", partial(_list, path))


def _first_cells(text: str) -> Iterator[tuple[int, str]]:
    """Yield the first cell of each row of the tables of files, with its line."""
    in_table = False
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            in_table = False
        elif in_table:
            yield number, line.split("|")[1]
        in_table = in_table or line.startswith("| file |")


def _list(path: Path) -> None:
    path.write_text(with_file_table(path.read_text(encoding="utf-8"), path.parent), encoding="utf-8")


def with_file_table(text: str, directory: Path) -> str:
    """Return a README with the table between its marks made anew; without the marks, the README as it is."""

    def table(match: re.Match[str]) -> str:
        rows = "".join(f"| `{name}` | {about} |\n" for name, about in _rows(directory))
        return f"{match[1]}| file | what it is |\n| --- | --- |\n{rows}{match[3]}"

    return _TABLE.sub(table, text)


def _rows(directory: Path) -> Iterator[tuple[str, str]]:
    """Yield the files of a task, each with what it is: a module by the first line of its docstring."""
    package = directory / directory.name
    for name in ("task.toml", "anchors.toml", "records.toml", "instructions.md"):
        if (directory / name).is_file():
            yield name, _ABOUT[name]
    for path in [directory / "score.py", *sorted(package.glob("*.py")), *sorted(package.glob("harness/*.py"))]:
        if path.is_file() and path.name != "__init__.py":
            yield path.relative_to(directory).as_posix(), _first_line(path)
    for name, about in _ABOUT.items():
        if name.endswith("/") and (directory / name).is_dir():
            yield name, about


def _first_line(path: Path) -> str:
    """Return the first line of a module's docstring without its full stop, as a table's cell."""
    try:
        lines = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()
    except (SyntaxError, ValueError):
        lines = []
    return (lines[0] if lines else "").removesuffix(".").replace("``", "`").replace("|", "\\|")
