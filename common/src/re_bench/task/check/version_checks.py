"""Checks against git that a task's version was raised when its scoring changed."""

from __future__ import annotations

import ast
import subprocess
import tomllib
from typing import TYPE_CHECKING, Any

from re_bench.task.check.problem import Note, Problem
from re_bench.task.check.toml_text import line_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from re_bench.task.check.task_files import TaskFiles

_SCORING_KEYS = ("direction", "aggregation", "resolution", "submission", "staging")
_PROFILE_KEYS = ("device", "modelled", "time_limit_s", "limits", "instance", "in_run")
_TIME_LIMIT_S = 30


def version_is_raised(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield that scorer, package or limits are others than when the version was last raised.

    Comments, docstrings and how code is laid out do not count. Where there is no git, or the task is not committed yet,
    a note says so.
    """
    path, manifest = files.directory / "task.toml", files.manifest
    if manifest is None:
        return
    committed = _git(files.directory, "show", "HEAD:./task.toml")
    if committed is None:
        yield Note(path, "not committed in a git repository, so that version was not compared with what changed")
        return
    line, before = line_of(files.text(path), ("version",)), _version(committed)
    if manifest.version < before:
        yield Problem(path, line, f"version {manifest.version} is lower than the committed {before}: raise it")
    if manifest.version != before:
        return
    commit = _git(files.directory, "log", "-1", "--format=%H", r"-G^version *= *[0-9]", "--", "task.toml")
    if not commit or not (commit := commit.strip()):
        return
    changed = sorted(_changed(files, commit))
    if changed:
        listed = ", ".join(changed[:3]) + (f" and {len(changed) - 3} more" if len(changed) > 3 else "")  # noqa: PLR2004
        text = f"version {manifest.version} is older than the scoring: since {commit[:7]} {listed} changed"
        yield Problem(path, line, f"{text}: write version = {manifest.version + 1}")


def _changed(files: TaskFiles, commit: str) -> Iterator[str]:
    """Yield the names of the scoring's files that do something else than in a commit."""
    scope = ("--", "task.toml", "score.py", files.name)
    untracked = _git(files.directory, "ls-files", "--others", "--exclude-standard", *scope) or ""
    different = _git(files.directory, "diff", "--name-only", "--relative", "--no-renames", commit, *scope) or ""
    compared = {name for name in different.splitlines() if name.endswith(".py") or name == "task.toml"}
    before = _contents(files.directory, commit, sorted(compared))
    for name in {*different.splitlines(), *untracked.splitlines()}:
        now, then = files.text(files.directory / name), before.get(name)
        meaning = _scoring if name == "task.toml" else _code
        if then is None or not (files.directory / name).is_file() or meaning(then) != meaning(now):
            yield name


def _contents(directory: Path, commit: str, names: list[str]) -> dict[str, str]:
    """Return what files held in a commit; those that it does not have are left out."""
    requests = "".join(f"{commit}:./{name}\n" for name in names).encode()
    output = _git(directory, "cat-file", "--batch", given=requests) if names else None
    found, rest = {}, (output or "").encode()
    for name in names:
        head, _newline, rest = rest.partition(b"\n")
        kind = head.split()[1:]
        if len(kind) == 2 and kind[0] == b"blob":  # noqa: PLR2004
            found[name], rest = rest[: int(kind[1])].decode(errors="replace"), rest[int(kind[1]) + 1 :]
    return found


def _scoring(text: str) -> Any:
    """Return what a manifest says about scoring."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    profiles = {
        name: {key: entry.get(key) for key in _PROFILE_KEYS} for name, entry in data.get("profiles", {}).items()
    }
    return {key: data.get(key) for key in _SCORING_KEYS} | {"profiles": profiles}


def _code(text: str) -> str:
    """Return what Python code does, without comments and docstrings."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return text
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _is_text(part)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    """Tell whether a statement is a string alone, as docstrings are."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _version(text: str) -> int:
    try:
        version = tomllib.loads(text).get("version", 0)
    except tomllib.TOMLDecodeError:
        return 0
    return version if isinstance(version, int) else 0


def _git(directory: Path, *arguments: str, given: bytes = b"") -> str | None:
    """Return what git prints; None if it is not there or fails."""
    command = ["git", "-C", str(directory), *arguments]
    try:
        done = subprocess.run(command, check=False, capture_output=True, input=given, timeout=_TIME_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
