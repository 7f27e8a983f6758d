"""A task's files as checks read them, each once."""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from re_bench.task.manifest_file import ManifestError, load

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator
    from pathlib import Path

    from re_bench.task.manifest import Manifest

_NOT_SOURCE = {"__pycache__", "build", "dist"}
_KEPT = 4096


@lru_cache(_KEPT)  # several checks ask, and mending checks again
def parse(text: str) -> ast.Module | SyntaxError:
    """Return the syntax tree of Python, or what is wrong with its syntax."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError) as error:
        return SyntaxError(str(error))


@dataclass
class TaskFiles:
    """The directory of a task, and what is in it."""

    directory: Path
    top: Path | None
    """The repository that the task is in, if it is in one: in its ``tasks``."""
    today: dt.date
    _texts: dict[Path, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the folder, and of the package in it."""
        return self.directory.name

    @property
    def package(self) -> Path:
        """The directory of the importable package."""
        return self.directory / self.name

    @cached_property
    def _loaded(self) -> Manifest | ManifestError:
        try:
            return load(self.directory / "task.toml")
        except ManifestError as error:
            return error

    @property
    def manifest(self) -> Manifest | None:
        """The manifest; None if it is unusable."""
        return None if isinstance(self._loaded, ManifestError) else self._loaded

    @property
    def manifest_problems(self) -> tuple[str, ...]:
        """What is wrong with the manifest."""
        return self._loaded.problems if isinstance(self._loaded, ManifestError) else ()

    @property
    def cheat_names(self) -> set[str] | None:
        """The cheats that ``task.toml`` has tables of, whatever else is wrong with it; None if it cannot be read."""
        if self.manifest is not None:
            return set(self.manifest.cheats)
        try:
            tables = tomllib.loads(self.text(self.directory / "task.toml")).get("cheats")
        except tomllib.TOMLDecodeError:
            return None
        return set(tables) if isinstance(tables, dict) else None

    def text(self, path: Path) -> str:
        """Return what a file holds; nothing if it is not there or no text."""
        if path not in self._texts:
            try:
                self._texts[path] = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                self._texts[path] = ""
        return self._texts[path]

    def tree(self, path: Path) -> ast.Module | SyntaxError:
        """Return a Python file's syntax tree, or what is wrong with its syntax."""
        return parse(self.text(path))

    def python_files(self, *parts: str) -> Iterator[Path]:
        """Yield the Python files of the task, or of these files and directories in it."""
        for part in parts or (".",):
            top = self.directory / part
            found = [top] if top.is_file() else top.rglob("*.py")
            yield from sorted(path for path in found if not _NOT_SOURCE & set(path.relative_to(self.directory).parts))

    @property
    def own_sources(self) -> list[Path]:
        """The Python files of the scorer's side: scorer and package."""
        return [path for path in self.python_files("score.py", self.name) if path.is_file()]

    def has(self, name: str) -> bool:
        """Tell whether the task has a file or directory."""
        return (self.directory / name).exists()
