"""Checks of ``instructions.md``: what agents are told is what the manifest and the sources say."""

from __future__ import annotations

import ast
import bisect
import math
import re
import tomllib
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from re_bench.task.check.import_checks import modules_beside
from re_bench.task.check.problem import Problem, line_with
from re_bench.task.check.task_files import parse
from re_bench.task.profile_names import is_profile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from re_bench.task.check.problem import Note
    from re_bench.task.check.task_files import TaskFiles

_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.,^/-])\d[\d,]*(?:\.\d+)?(?:e\d+)?(?!\w)")
_FILE = re.compile(r"`(?:python )?([\w./-]+\.(?:py|csv|json|jsonl|txt|bin|pt|pth|safetensors|toml|md|npy|npz))\b[^`]*`")
_PROFILES = re.compile(r"[Pp]rofiles?((?: |, | and | or |,\n|\n)`[\w-]+`)+")
_DECLARED = re.compile(r"# instructions\.md says ([\d., e]+)$", re.MULTILINE)
_SCALES = (
    *(10.0 ** (3 * power) for power in range(-4, 5)), 100.0, 0.01, 60.0, 1 / 60, 3600.0, 1 / 3600,
    *(1024.0**power for power in (-3, -2, -1, 1, 2, 3)),
)  # fmt: skip
"""Between the units of sources and of prose."""
_ALWAYS_KNOWN = 10
"""Whole numbers up to this one count things."""
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], float]] = {
    ast.Add: lambda one, other: one + other,
    ast.Sub: lambda one, other: one - other,
    ast.Mult: lambda one, other: one * other,
    ast.Div: lambda one, other: one / other,
    ast.Pow: lambda one, other: one**other if abs(other) <= 64 else math.nan,  # noqa: PLR2004
    ast.LShift: lambda one, other: one << other if 0 <= other <= 64 else math.nan,  # noqa: PLR2004
}


def instructions_fit_the_manifest(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield a wrong direction, profiles that there are not, and that a file to hand in is not named."""
    path, manifest = files.directory / "instructions.md", files.manifest
    text = files.text(path)
    if manifest is None or not text:
        return
    other = "higher" if manifest.direction == "lower" else "lower"
    if f"{other} is better" in text:
        line = line_with(text, f"{other} is better")
        yield Problem(path, line, f"says that {other} is better, and direction is {manifest.direction}: correct one")
    if not any(name in text for name in manifest.submission):
        yield Problem(path, 1, f"does not name {' or '.join(manifest.submission)}, which is to be handed in: say so")
    for number, name in _profiles_named(text):
        if name not in manifest.profiles:
            yield Problem(path, number, f"task.toml has no profile {name}: correct one of them")


def _profiles_named(text: str) -> Iterator[tuple[int, str]]:
    """Yield the profiles that the text or the first cells of its tables name, each with its line."""
    for match in _PROFILES.finditer(text):
        start = text.count("\n", 0, match.start()) + 1
        yield from ((start, name) for name in re.findall(r"`([\w-]+)`", match[0]) if is_profile(name))
    for number, line in enumerate(text.splitlines(), 1):
        cell = line.split("|")[1].strip(" `") if line.startswith("|") else ""
        if is_profile(cell):
            yield number, cell


def named_files_are_found(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield the files that instructions name and no agent finds: not in the workspace, and written by nothing."""
    path, manifest = files.directory / "instructions.md", files.manifest
    if manifest is None:
        return
    layers = [*(files.directory / layer for layer in ("starter", "baseline")), files.package]  # which prepare.py copies
    laid_out = {file.name for layer in layers for file in layer.rglob("*")}
    known = laid_out | {PurePosixPath(name).name for name in manifest.submission} | {"instructions.md"}
    sources = "".join(files.text(file) for file in [*files.own_sources, *files.python_files("starter", "baseline")])
    beside = modules_beside(files)
    for number, line in enumerate(files.text(path).splitlines(), 1):
        for name in _FILE.findall(line):
            last = PurePosixPath(name).name
            if last not in known and last not in sources and PurePosixPath(last).stem not in beside:
                yield Problem(path, number, f"names {name}, which is neither in starter/ nor made by any source")


def numbers_are_those_of_the_sources(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield the numbers of the instructions that no constant of manifest, scorer, package or starter has.

    A constant may have another unit: thousands, KiB, per cent, minutes. A number that is computed is named by the test
    that computes it, in a comment ``# instructions.md says 86``. Code and whole numbers up to 10 are not looked at.
    """
    path = files.directory / "instructions.md"
    if files.manifest is None or not files.text(path):
        return
    known = sorted({constant * scale for constant in set(_constants(files)) for scale in _SCALES})
    text = _FENCED.sub(lambda match: "\n" * match[0].count("\n"), files.text(path))
    text = re.sub(r"<!--.*?-->|`[^`\n]*`", "", text)
    for number, line in enumerate(text.splitlines(), 1):
        for word in _NUMBER.findall(line):
            value = float(word.replace(",", ""))
            if (value > _ALWAYS_KNOWN or value != int(value)) and not _is_known(value, word, known):
                yield Problem(
                    path,
                    number,
                    f"{word} is no constant of task.toml, scorer, package or starter: correct it here or there",
                )


def _is_known(value: float, word: str, known: list[float]) -> bool:
    """Tell whether a constant, in some unit, is this number, rounded to as many digits as the word has."""
    half = 0.5 * 10.0 ** -len(word.partition(".")[2]) if "." in word else 0.0
    tolerance = max(half, 1e-9 * value)
    index = bisect.bisect_left(known, value - tolerance)
    return index < len(known) and known[index] <= value + tolerance


def _constants(files: TaskFiles) -> Iterator[float]:
    """Yield the numbers of the manifest, of the sources, and of what tests declare."""
    yield from _numbers_in(tomllib.loads(files.text(files.directory / "task.toml")))
    for path in [*files.own_sources, *files.python_files("starter", "baseline")]:
        yield from _constants_of(files.text(path))
    for path in files.python_files("tests"):
        for match in _DECLARED.finditer(files.text(path)):
            yield from (float(word) for word in re.findall(r"[\d.]+(?:e\d+)?", match[1]))


@lru_cache(4096)
def _constants_of(text: str) -> frozenset[float]:
    """Return the numbers of a Python file, those in strings of digits and the results of arithmetic too."""
    found: set[float] = set()
    tree = parse(text)
    for node in ast.walk(tree) if isinstance(tree, ast.Module) else ():
        if isinstance(node, ast.Constant | ast.BinOp) and (value := _value(node)) is not None:
            found.add(abs(value))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isdecimal():
            found.add(float(node.value))
    return frozenset(found)


def _numbers_in(value: object) -> Iterator[float]:
    if isinstance(value, dict):
        for entry in value.values():
            yield from _numbers_in(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _numbers_in(entry)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield abs(float(value))


def _value(node: ast.expr) -> float | None:
    """Return the value of a number or of arithmetic with numbers."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) in (int, float) else None  # type: ignore[return-value]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value(node.operand)
        return None if value is None else -value
    operation = _OPERATIONS.get(type(node.op)) if isinstance(node, ast.BinOp) else None
    if not isinstance(node, ast.BinOp) or operation is None:
        return None
    one, other = _value(node.left), _value(node.right)
    try:
        value = None if one is None or other is None else float(operation(one, other))
    except (ArithmeticError, TypeError, ValueError):
        return None
    return value if value is not None and math.isfinite(value) else None
