"""Build a task's wheel, which merges the folder and the package in it; an editable install uses the folder directly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_LEFT_OUT = {"Dockerfile", "__pycache__", "build", "dist", "hatch_build.py", "pyproject.toml", "tests"}


class TaskHook(BuildHookInterface[Any]):
    """Adds the files of a task's folder to its package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add all files except tests and packaging to a wheel."""
        if version == "editable":
            return
        top = Path(self.root)
        for path in sorted(top.iterdir()):
            if path.name not in _LEFT_OUT | {top.name} and not path.name.startswith("."):
                build_data["force_include"][str(path)] = f"{top.name}/{path.name}"
