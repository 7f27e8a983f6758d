"""Check a task's own files: manifest, anchors, records, canary lines, cheats, instructions and generated files."""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError
from re_bench.task import CANARY
from re_bench.task.discovery import open_task
from re_bench.task.generated import INSTRUCTIONS, generate
from re_bench.task.manifest import CHEAT, RECORDS, Records
from re_bench.task.manifest_file import ManifestError, anchors_file, anchors_text, load, read_table
from re_bench.task.services import SERVICES

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator

    from re_bench.task.manifest import Cheat, Manifest

OLDEST_ANCHORS_DAYS = 365
"""Maximum age of anchors, since hardware, drivers and packages change."""
MIN_CHEATS = 4
"""Minimum number of cheats: any task can be attacked with a forged score, a wrong answer, no answer, and a search for
the ground truth."""
MAX_SCORER_LINES = 80
"""Maximum length of ``score.py``, so that a task's class fits on a screen."""

_REQUIRED = {
    "instructions.md": "the text for agents",
    "README.md": "the page for maintainers",
    "pyproject.toml": "the package",
    "Dockerfile": "the agent's image",
    "score.py": "the scorer",
    "reference": "the reference solution",
    "starter": "the files that agents start with",
    "tests": "tests of the task",
}
_DRAWN_BY = {"chosen": ("job.instance_number", "setup.instance"), "secret": ("secret_seed(", "public_windows(")}
"""Code that shows that a task uses its instance, by kind of instance."""
_TOML_LINE = re.compile(r"\(at line (\d+)")
_NOT_SOURCE = {"__pycache__", "build", "dist"}


@dataclass(frozen=True)
class Problem:
    """A problem in a file; ``text`` describes the problem and how to fix it."""

    path: Path
    line: int
    """Line number, counted from 1."""
    text: str
    fix: Callable[[], object] | None = field(default=None, compare=False)
    """A function that fixes the file; None if there is no automatic fix."""

    def __str__(self) -> str:
        """Return ``file:line: text``."""
        return f"{shown(self.path)}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Note:
    """A remark that is not a problem, such as a check that was not possible."""

    path: Path
    text: str

    def __str__(self) -> str:
        """Return ``file: text``."""
        return f"{shown(self.path)}: {self.text}"


@dataclass(frozen=True)
class Report:
    """The result of the checks."""

    problems: tuple[Problem, ...]
    notes: tuple[Note, ...]
    is_checked: bool = True
    """Whether the files were checked."""


if TYPE_CHECKING:
    Found = Iterator[Problem | Note]


@dataclass
class TaskFiles:
    """A task's directory and manifest."""

    directory: Path
    top: Path | None
    """The repository, if the task is in its folder ``tasks``."""
    today: dt.date
    manifest: Manifest | None = None
    """None if it is malformed."""
    manifest_problems: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Read the manifest."""
        try:
            self.manifest = load(self.toml)
        except ManifestError as error:
            self.manifest_problems = error.problems

    @property
    def name(self) -> str:
        """The name of the task's directory and package."""
        return self.directory.name

    @property
    def toml(self) -> Path:
        """The path of ``task.toml``."""
        return self.directory / "task.toml"

    def python_files(self, *parts: str) -> list[Path]:
        """Return the task's Python files, or only those in the given parts (files or directories) of the task."""
        found: list[Path] = []
        for top in [self.directory / part for part in parts or (".",)]:
            found += [top] if top.is_file() else sorted(top.rglob("*.py"))
        return [path for path in found if not _NOT_SOURCE & set(path.relative_to(self.directory).parts)]


def shown(path: Path) -> str:
    """Return a path for messages, relative to the working directory if the path is inside it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def text_of(path: Path) -> str:
    """Return the text of a file; empty if it is missing or not text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def line_with(text: str, part: str) -> int:
    """Return the number, from 1, of the first line with ``part``; 1 if there is none."""
    before, found, _after = text.partition(part)
    return before.count("\n") + 1 if found else 1


def line_of(text: str, key: str) -> int:
    """Return the line (from 1) of a TOML key such as ``published[0].name``, or of the innermost table around it."""
    lines = text.splitlines()
    names = re.findall(r'"(?:[^"\\]|\\.)*"|[\w-]+', re.sub(r"\[\d+\]", "", key))
    position = int(found[1]) if (found := re.search(r"\[(\d+)\]", key)) else 0
    for depth in range(len(names), -1, -1):
        head = re.compile(rf"\[+{re.escape('.'.join(names[:depth]))}\]+\s*(#.*)?$")
        heads = [number for number, line in enumerate(lines, 1) if head.match(line)] if depth else [0]
        if not heads:
            continue
        start = heads[min(position, len(heads) - 1)]
        for number, line in enumerate(lines[start:], start + 1):
            if line.startswith("["):
                break
            if names[depth:] and re.match(rf"{re.escape(names[depth])}\s*[=.]", line):
                return number
        if depth:
            return start
    return 1


def _check_manifest(files: TaskFiles) -> Found:
    """Yield the problems found while reading the manifest's files."""
    for text in files.manifest_problems:
        name, _colon, rest = text.partition(": ")
        path, found = Path(name), _TOML_LINE.search(rest)
        yield Problem(path, int(found[1]) if found else line_of(text_of(path), rest.partition(": ")[0]), rest)


def _check_instances(files: TaskFiles) -> Found:
    """Yield problems: kinds of instances that only the code uses, or that only the manifest declares."""
    if files.manifest is None:
        return
    text = text_of(files.toml)
    sources = "".join(text_of(source) for source in files.python_files("score.py", files.name) if source.is_file())
    drawn_by = {source for source, calls in _DRAWN_BY.items() if any(call in sources for call in calls)}
    declared = {profile.instance for profile in files.manifest.profiles.values()} - {None}
    for source in sorted(drawn_by - declared):
        calls = " or ".join(_DRAWN_BY[source])
        what = f'the task uses {calls}, but no profile has instance = "{source}": add it to the profiles with instances'
        yield Problem(files.toml, line_with(text, "[profiles."), what)
    for source in sorted(filter(None, declared - drawn_by)):
        what = f'instance = "{source}", but the task does not use {" or ".join(_DRAWN_BY[source])}: remove it'
        yield Problem(files.toml, line_with(text, f'instance = "{source}"'), what)


def _check_anchors(files: TaskFiles) -> Found:
    """Yield problems: anchors that are old, in the wrong file, or not written by ``calibrate``.

    Yield notes for profiles without anchors.
    """
    manifest, measured = files.manifest, anchors_file(files.toml)
    if manifest is None:
        return
    text, in_manifest = text_of(measured), tomllib.loads(text_of(files.toml)).get("profiles", {})
    if text and text != anchors_text(tomllib.loads(text)):
        yield Problem(measured, 1, "not formatted as re-bench calibrate writes it; calibrate again")
    for name, profile in manifest.profiles.items():
        again = f"re-bench calibrate {files.name} --profile {name}"
        if not (profile.anchors or profile.devices or profile.models or profile.in_run):
            yield Note(files.toml, f"profile {name} has no anchors yet: {again}")
        if in_manifest[name].get("anchors", {}).get("source", {}).get("kind") in ("measured", "modelled"):
            line = line_of(text_of(files.toml), f"profiles.{name}.anchors")
            what = f"profile {name}: measured anchors belong in anchors.toml: run {again}"
            yield Problem(files.toml, line, what)
        for place, anchors in profile.all_anchors():
            key = f"profiles.{name}.{place[0]}" + "".join(f"[{index}]" for index in place[1:]) + ".source.date"
            file = measured if text else files.toml
            days = (files.today - anchors.source.date).days if anchors.source.date else 0
            if days > OLDEST_ANCHORS_DAYS:
                what = f"profile {name}: the anchors are {days} days old ({anchors.source.date}): {again}"
                yield Problem(file, line_of(text_of(file), key), what)
            elif days < -1:  # tomorrow is possible in another time zone
                what = (
                    f"profile {name}: the anchors are from the future ({anchors.source.date}): set the clock, {again}"
                )
                yield Problem(file, line_of(text_of(file), key), what)


def _check_records(files: TaskFiles) -> Found:
    """Yield problems: records of unknown profiles."""
    path = files.directory / RECORDS
    if files.manifest is None or not path.is_file():
        return
    for name in sorted({record.profile for record in read_table(path, Records).records} - set(files.manifest.profiles)):
        line = line_with(text_of(path), f'profile = "{name}"')
        yield Problem(path, line, f"task.toml has no profile {name!r}: correct the record or the manifest")


def _check_required_files(files: TaskFiles) -> Found:
    """Yield problems: missing files, and Python files with syntax errors."""
    package = files.directory / files.name
    required = {files.directory / name: what for name, what in _REQUIRED.items()}
    required |= {package / "__init__.py": "the task's package", package / "grading.py": "the ground truth"}
    for path, what in required.items():
        if not path.exists():
            yield Problem(path, 1, f"missing: {what}")
    for path in files.python_files():
        try:
            ast.parse(text_of(path))
        except SyntaxError as error:
            yield Problem(path, error.lineno or 1, f"invalid Python: {error.msg}")
        except (ValueError, RecursionError) as error:
            yield Problem(path, 1, f"invalid Python: {error}")


def _check_scorer(files: TaskFiles) -> Found:
    """Yield a problem if the scorer is too long, or its docstring does not define the raw score."""
    path = files.directory / "score.py"
    if text := text_of(path):
        if (count := len(text.splitlines())) > MAX_SCORER_LINES:
            what = f"{count} lines, at most {MAX_SCORER_LINES}: move code into the package"
            yield Problem(path, MAX_SCORER_LINES, what)
        if not re.match(r'"""[^"]*\braw = ', text):
            yield Problem(path, 1, "the docstring does not define the raw score: write 'raw = ...'")


def _check_canaries(files: TaskFiles) -> Found:
    """Yield problems: files without the canary line."""
    named = [files.directory / "README.md", files.directory / "instructions.md"]
    for path in [*named, *files.python_files("reference")]:
        if path.is_file() and CANARY not in text_of(path):
            what = f"has no canary line ({CANARY[:16]}...): type re-bench check --fix"
            yield Problem(path, 1, what, partial(_add_canary, path))


def _add_canary(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    line = f"<!-- {CANARY} -->\n" if path.suffix == ".md" else f"# {CANARY}\n"
    first, newline, rest = text.partition("\n")
    path.write_text(f"{first}{newline}{line}{rest}" if first.startswith("#!") else line + text, encoding="utf-8")


def _check_cheat_folders(files: TaskFiles) -> Found:
    """Yield problems: cheats without a description or a submission, and too few cheats."""
    folders = [folder for folder in sorted(files.directory.glob("cheats/*")) if any(folder.glob("*"))]
    for folder in folders:
        names = {path.name for path in folder.iterdir()} - {"__pycache__"}
        if CHEAT not in names:
            yield Problem(folder, 1, f"has no {CHEAT}: describe the cheat and how it must fail")
        elif names == {CHEAT}:
            yield Problem(folder / CHEAT, 1, "no submission next to it: write a submission, or remove the folder")
    if len(folders) < MIN_CHEATS:
        what = f"{len(folders)} cheats, at least {MIN_CHEATS}: add other ways to game the scorer"
        yield Problem(files.toml, 1, what)


def _check_expectations(files: TaskFiles) -> Found:
    """Yield problems: expected refusals without a reason, unknown profiles, missing ``derived_from`` directories."""
    for name, cheat in files.manifest.cheats.items() if files.manifest else ():
        path = files.directory / "cheats" / name / CHEAT
        for key, text in _expectation_problems(files, cheat):
            yield Problem(path, line_of(text_of(path), key), text)


def _check_cheat_programs(files: TaskFiles) -> Found:
    """Yield problems: cheats' programs that have no docstring, or that mention modules the task does not have."""
    for path in sorted(files.directory.glob("cheats/*/*.py")):
        text = text_of(path)
        try:
            if not ast.get_docstring(ast.parse(text)):
                yield Problem(path, 1, "has no docstring: say what the cheat tries, and what stops it")
        except (SyntaxError, ValueError):
            continue  # some cheats are not Python
        for name in sorted(set(re.findall(rf"\b{files.name}(?:\.\w+)+", text))):
            module = files.directory.joinpath(*name.split("."))
            if not module.is_dir() and not module.with_suffix(".py").is_file():
                yield Problem(path, line_with(text, name), f"no module {name}: name the module that it attacks")


def _expectation_problems(files: TaskFiles, cheat: Cheat) -> Iterator[tuple[str, str]]:
    profiles = set(files.manifest.profiles) if files.manifest else set()
    for where, expected in ("", cheat), *((f"on.{profile}.", entry) for profile, entry in cheat.on.items()):
        if expected.expect == "invalid" and expected.reason is None:
            yield f"{where}expect", "passes for any reason: add reason = ..., which the message must match"
        if expected.derived_from is not None and not (files.directory / expected.derived_from).is_dir():
            what = f"no directory {expected.derived_from}: name the solution it is derived from"
            yield f"{where}derived_from", what
    for profile in sorted({*(cheat.profiles or ()), *cheat.on} - profiles):
        key = "profiles" if profile in (cheat.profiles or ()) else f"on.{profile}"
        yield key, f"unknown profile {profile}: remove it, or correct the name"


def _check_instructions(files: TaskFiles) -> Found:
    """Yield problems: instructions that state the wrong direction, or that name no file to submit."""
    path, manifest = files.directory / "instructions.md", files.manifest
    text = text_of(path)
    if manifest is None or not text:
        return
    other = "higher" if manifest.direction == "lower" else "lower"
    if f"{other} is better" in text:
        line = line_with(text, f"{other} is better")
        yield Problem(path, line, f"says {other} is better, but direction is {manifest.direction}: correct one")
    if not any(name in text for name in manifest.submission):
        yield Problem(path, 1, f"does not name the file to submit: add {' or '.join(manifest.submission)}")


def _check_generated_files(files: TaskFiles) -> Found:
    """Yield problems: stale generated files, and services that only the class or only the manifest has."""
    if files.manifest is None:
        return
    try:
        generated = generate(open_task(files.directory))
    except ReBenchError as error:
        text = str(error).removeprefix(f"{files.directory / INSTRUCTIONS}: ")
        yield Problem(files.directory / INSTRUCTIONS, 1, text)
        return
    yield from _service_problems(files, files.manifest, generated.services)
    for name, text in generated.files.items():
        path = files.directory / name
        if text_of(path) != text:
            what = "differs from its template's output: type re-bench check --fix"
            yield Problem(path, 1, what, partial(path.write_text, text, encoding="utf-8"))


def _service_problems(files: TaskFiles, manifest: Manifest, defined: list[str]) -> Iterator[Problem]:
    for table, method in SERVICES.items():
        declared = {"model": manifest.model, "meter": manifest.meter}[table] is not None
        if declared and method not in defined:
            line = line_of(text_of(files.toml), table)
            yield Problem(files.toml, line, f"[{table}] needs the method {method} in score.py's class: add it")
        elif method in defined and not declared:
            line = line_with(text_of(files.directory / "score.py"), f"def {method}(")
            what = f"the class has the method {method}, but task.toml has no [{table}]: add it"
            yield Problem(files.directory / "score.py", line, what)


FILE_CHECKS: tuple[Callable[[TaskFiles], Found], ...] = (
    _check_manifest,
    _check_instances,
    _check_anchors,
    _check_records,
    _check_required_files,
    _check_scorer,
    _check_canaries,
    _check_cheat_folders,
    _check_expectations,
    _check_cheat_programs,
    _check_instructions,
    _check_generated_files,
)
"""The checks, in the order of the report. Only the last check imports ``score.py``, in another process."""
