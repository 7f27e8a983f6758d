"""Checks that agents can import what starter, baseline and reference import, without importing any of it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache, lru_cache
from importlib.metadata import packages_distributions
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from re_bench.task.check.dockerfile_checks import locks_of
from re_bench.task.check.problem import Problem
from re_bench.task.check.project_checks import required
from re_bench.task.check.task_files import parse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from re_bench.task.check.problem import Note
    from re_bench.task.check.task_files import TaskFiles

_LAYERS = ("starter", "baseline", "reference")


def agents_can_import(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield imports that fail for agents: of no standard module, no file beside it, no package of the image."""
    beside = modules_beside(files)
    packages, where = _packages(files)
    for layer in _LAYERS:
        for path in files.python_files(layer):
            for line, name in _imports_of(files.text(path)):
                if name in sys.stdlib_module_names or name in beside or canonicalize_name(name) in packages:
                    continue
                if set(packages) & {canonicalize_name(found) for found in _distributions().get(name, ())}:
                    continue
                yield Problem(path, line, f"imports {name}, which agents have not: put it into {where}, or beside it")


def modules_beside(files: TaskFiles) -> set[str]:
    """Return the modules of a workspace: those laid out, and those that the package's sources name as files."""
    tops = [files.directory / layer for layer in _LAYERS]
    names = {path.name.removesuffix(".py") for top in tops for path in top.glob("*")}
    sources = "".join(files.text(path) for path in files.own_sources)
    prepared = files.tree(files.package / "prepare.py")
    nodes = [node for node in ast.walk(prepared) if isinstance(node, ast.Import | ast.ImportFrom)] if isinstance(
        prepared, ast.Module
    ) else []  # fmt: skip
    names |= {alias.name.rpartition(".")[2] for node in nodes for alias in node.names}  # as files of these modules
    return names | {"base"} | set(re.findall(r"""["'/](\w+)(?:\.py)?["'/]""", sources))


def _packages(files: TaskFiles) -> tuple[Collection[str], str]:
    """Return the packages that agents have, and where they are named."""
    dockerfile = files.text(files.directory / "Dockerfile")
    locks = locks_of(dockerfile)
    if files.top is None or not locks:
        try:
            project = tomllib.loads(files.text(files.directory / "pyproject.toml")).get("project", {})
        except tomllib.TOMLDecodeError:
            project = {}
        needed = [] if files.top else project.get("dependencies", [])
        return {name for line in needed if (name := required(line))}, "the Dockerfile"
    texts = [files.text(files.top / "images" / "locks" / f"{name}.txt") for name in locks]
    found = {canonicalize_name(name) for text in texts for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}
    return {*found, *(["torch"] if "torch" in locks else [])}, f"images/locks.toml, table {locks[-1]}"


@lru_cache(4096)
def _imports_of(text: str) -> tuple[tuple[int, str], ...]:
    tree = parse(text)
    return tuple(_imports(tree)) if isinstance(tree, ast.Module) else ()


def _imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the top-level names of what is imported, but for what may fail or is there for types alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module.partition(".")[0]
        elif not (isinstance(node, ast.Try) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))):
            yield from _imports(node)


@cache  # it reads the metadata of all packages
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()
