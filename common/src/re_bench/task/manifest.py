"""The manifest of a task, `task.toml`: what it may say and how it is read.

Every field's description is what a person who left it out is told to supply, so it is written as a noun phrase.
"""

import errno
import json
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from re_bench import limits
from re_bench.errors import ReBenchError
from re_bench.limits import Bounds
from re_bench.task.anchors import Anchors, Source, Spread, device_conflicts
from re_bench.task.manifest_errors import Conflict, Table, at, listed, number
from re_bench.task.manifest_values import (
    PROFILES,
    CheatName,
    Files,
    Line,
    Note,
    ProfileKey,
    ProfileNames,
    Regex,
    TaskId,
    Text,
    TopNames,
    Words,
)

__all__ = [
    "PROFILES",
    "Anchors",
    "Cheat",
    "Expectation",
    "Limits",
    "Manifest",
    "ManifestError",
    "Meter",
    "Model",
    "Profile",
    "Published",
    "Rebuild",
    "Recipe",
    "ReferenceRecipe",
    "Source",
    "Spread",
    "Staging",
    "Tolerance",
    "load",
    "parse",
    "read_text",
]

_TOLERANCE = 0.05
_DEFAULT = limits.Limits()
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class ManifestError(ReBenchError, ValueError):
    """A manifest is unusable; the message has one line for each problem, also in `problems`."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class Limits(Table):
    """What the process of a submission may use; the defaults are those of :class:`re_bench.limits.Limits`."""

    wall_s: float = Field(default=_DEFAULT.wall_s, gt=0, description="seconds of wall-clock time")
    cpu_s: int = Field(default=_DEFAULT.cpu_s, gt=0, description="whole seconds of processor time of each process")
    memory_mib: int = Field(default=_DEFAULT.memory_mib, gt=0, description="MiB of memory")
    processes: int = Field(default=_DEFAULT.processes, gt=0, description="the number of processes and threads")
    file_mib: int = Field(default=_DEFAULT.file_mib, gt=0, description="MiB that one file may grow to")
    open_files: int = Field(default=_DEFAULT.open_files, gt=0, description="the number of open files of each process")
    output_kib: int = Field(default=_DEFAULT.output_kib, gt=0, description="KiB of output kept")


class Tolerance(Table):
    """How far from 0 and 1 the rewards of baseline and reference may be: half-widths, in rewards."""

    baseline: float = Field(default=_TOLERANCE, ge=0, description="the half-width around 0")
    reference: float = Field(default=_TOLERANCE, ge=0, description="the half-width around 1")


class Profile(Table):
    """A size at which the task runs.

    Its anchors are stored, and it has not been calibrated without them; or every scoring measures them anew, and those
    stored for named devices are shown beside.
    """

    description: Line = Field(description="one line that says what runs")
    device: Literal["cpu", "cuda"] = Field(description="one of 'cpu' or 'cuda'")
    modelled: bool = Field(default=False, description="true if the raw score is modelled, not measured")
    parallel: bool = Field(default=False, description="true if the raw score depends on no time")
    time_limit_s: float = Field(gt=0, description="the wall-clock seconds that one whole scoring may take")
    tolerance: Tolerance = Field(default_factory=Tolerance, description="a table of tolerances")
    limits: Limits = Field(default_factory=Limits, description="a table of limits")
    in_run: bool = Field(default=False, description="true if every scoring measures the anchors beside the submission")
    anchors: Anchors | None = Field(default=None, description="a table of anchors")
    devices: Annotated[tuple[Anchors, ...], Field(strict=False)] = Field(
        default=(), description="a list of anchors, one entry for each device"
    )

    def anchors_on(self, hardware: object) -> Anchors | None:
        """Return the stored anchors of the device of this name, or None if there are none."""
        return next((entry for entry in self.devices if entry.source.hardware == hardware), None)

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield stored anchors in the wrong place, and devices that have no name of their own."""
        in_run = data.get("in_run") is True
        if in_run and data.get("anchors") is not None:
            yield ("anchors",), "expected devices instead, because in_run is true, got a table"
        if not in_run and data.get("devices"):
            yield ("devices",), "expected anchors instead, because in_run is not true, got a list"
        for place, problem in device_conflicts(data.get("devices")):
            yield ("devices", *place), problem


class Published(Table):
    """Anchors that somebody published, in the raw score's unit."""

    name: Line = Field(description="the name of the publication or port")
    hardware: Text = Field(description="the hardware, as far as it is known")
    starting: float = Field(description="the published starting score, a number")
    reference: float = Field(description="the published reference score, a number")
    where: Text = Field(description="text that says where they were published")
    note: Note = Field(default="", description="what else to know")


class Recipe(Table):
    """How a solution makes what it submits: a command, run in the sandbox in the laid-out workspace."""

    command: Words = Field(description="a list of the command and its arguments")
    time_limit_s: float = Field(gt=0, description="the wall-clock seconds that the command may take")


class ReferenceRecipe(Recipe):
    """How the reference makes what it submits, and how often that is checked."""

    repeats: int = Field(
        default=1, gt=0, description="how often baseline and reference are scored, each with a seed of its own"
    )


class Model(Table):
    """The chat model that a task's submissions talk to, and the task's own stand-in for it."""

    name: Line = Field(description="the model's name, such as gpt-3.5-turbo-0125")
    aliases: tuple[Line, ...] = Field(default=(), strict=False, description="a list of other names for the same model")
    stand_in: Line = Field(description="what makes the stand-in, such as example_task.pool:answer")
    key: tuple[ProfileKey, ...] = Field(
        default=(), strict=False, description="a list of the profiles that need the real model, and so a key"
    )


class Meter(Table):
    """The program that makes and counts experiments outside of the sandbox."""

    module: Line = Field(description="the module that is run, such as example_task.meter")
    request: Line = Field(description="what a request looks like, such as [width, steps, seed], all integers")


class Rebuild(Table):
    """The program that makes a task's computed truth anew."""

    program: Line = Field(description="a file relative to the task's directory, such as tools/rebuild.py")


class Staging(Table):
    """What is copied of a submission before it is scored; see :class:`re_bench.scoring.staging.Bounds`."""

    names: TopNames | None = Field(
        default=None, description="a list of the names at the submission's top that are copied"
    )
    mib: int = Field(default=Bounds.mib, gt=0, description="MiB of all files together")


class Expectation(Table):
    """How a cheat must fail."""

    expect: Literal["invalid", "no_better"] = Field(description="one of 'invalid' or 'no_better'")
    reason: Regex | None = Field(
        default=None, description="a regular expression that the message of an invalid attempt must match"
    )


class Cheat(Expectation):
    """A checked-in submission that games the scorer, and how it must fail."""

    description: Line = Field(description="one line that says what the cheat tries")
    profiles: ProfileNames | None = Field(
        default=None, description="a list of the profiles in which the cheat makes sense"
    )
    make: Recipe | None = Field(default=None, description="a table that says how the cheat is made")
    on: dict[ProfileKey, Expectation] = Field(
        default_factory=dict, description="a table of what to expect on single profiles instead"
    )

    def runs_on(self, profile: str) -> bool:
        """Tell whether the cheat makes sense in a profile."""
        return self.profiles is None or profile in self.profiles

    def expectation(self, profile: str) -> Expectation:
        """Return how the cheat must fail in a profile."""
        return self.on.get(profile, self)

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield expectations on profiles in which the cheat is not run."""
        profiles, on = data.get("profiles"), data.get("on")
        if profiles is None or not isinstance(on, Mapping):
            return
        for name in on:
            if name in PROFILES and name not in listed(profiles):
                yield ("on", name), f"expected {name} among the cheat's profiles too, got a table for it alone"


class Manifest(Table):
    """A task's manifest."""

    id: TaskId = Field(description="the task's id, such as ai_rd_example")
    title: Line = Field(description="one line of text")
    description: Line = Field(description="one line that says what the task is")
    version: int = Field(ge=1, description="a whole number of at least 1")
    direction: Literal["lower", "higher"] = Field(description="one of 'lower' or 'higher'")
    aggregation: Literal["min", "max", "last"] = Field(description="one of 'min', 'max' or 'last'")
    show_score: bool = Field(default=True, description="whether the agent may see its score")
    unit: Line = Field(description="the unit of the raw score, such as ln(milliseconds)")
    submission: Files = Field(
        description="a list of file names relative to the submission, at least one of which must be there"
    )
    staging: Staging = Field(default_factory=Staging, description="a table that says what is copied of a submission")
    profiles: dict[ProfileKey, Profile] = Field(default_factory=dict, description="a table of profiles")
    published: Annotated[tuple[Published, ...], Field(strict=False)] = Field(
        default=(), description="a list of published anchors"
    )
    reference: ReferenceRecipe | None = Field(default=None, description="a table that says how the reference is made")
    cheats: dict[CheatName, Cheat] = Field(default_factory=dict, description="a table of cheats")
    model: Model | None = Field(default=None, description="a table that says which chat model submissions talk to")
    meter: Meter | None = Field(default=None, description="a table that says what makes experiments")
    rebuild: Rebuild | None = Field(default=None, description="a table that says what makes the truth anew")

    def anchors(self, profile: str) -> Anchors | None:
        """Return the anchors of a profile, or None if it has not been calibrated yet or measures them in every run.

        Raises:
            KeyError: if the task has no such profile.
        """
        if profile not in self.profiles:
            raise KeyError(f"{self.id} has no profile {profile!r}; it has: {', '.join(self.profiles) or 'none yet'}")
        return self.profiles[profile].anchors

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield submitted files that are not copied, and anchors that lie the wrong way round for ``direction``."""
        yield from _left_out(data)
        direction = data.get("direction")
        if direction not in ("lower", "higher"):
            return
        side = "below" if direction == "lower" else "above"
        for place, anchors in _all_anchors(data):
            starting, reference = number(at(anchors, "starting")), number(at(anchors, "reference"))
            if starting is None or reference is None:
                continue
            if (reference > starting) if direction == "lower" else (reference < starting):
                why = f"a number {side} starting ({starting}), because direction is {direction}"
                yield (*place, "reference"), f"expected {why}, got {reference}"


def _left_out(data: Mapping[str, Any]) -> Iterator[Conflict]:
    """Yield the files of ``submission`` that staging would leave out."""
    bounds = Bounds(names=tuple(str(name) for name in listed(at(data, "staging", "names"))) or None)
    for file in listed(at(data, "submission")):
        if isinstance(file, str) and not bounds.include(file.partition("/")[0]):
            yield ("staging", "names"), f"expected names that include {file} of submission, got a list without it"


def _all_anchors(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Yield where anchors are stored, and what is there."""
    for name in PROFILES:
        place = ("profiles", name)
        yield (*place, "anchors"), at(data, *place, "anchors")
        for index, entry in enumerate(listed(at(data, *place, "devices"))):
            yield (*place, "devices", index), entry


def load(path: Path) -> Manifest:
    """Read a task's manifest.

    Args:
        path: the `task.toml`.

    Raises:
        ManifestError: if it cannot be read or is not a manifest; lists every problem with file, key, and what was
            expected.
    """
    return parse(read_text(path), path)


def read_text(path: Path) -> str:
    """Return the text of a manifest.

    Raises:
        ManifestError: if there is no readable UTF-8 file; says what is there instead.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            what = "a directory" if stat.S_ISDIR(mode) else "a pipe, socket or device"
            raise ManifestError([f"{path}: expected a file, got {what}"])
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ManifestError([f"{path}: expected UTF-8 text, got other bytes at offset {error.start}"]) from error
    except OSError as error:
        got = "no such file" if error.errno == errno.ENOENT else error.strerror
        raise ManifestError([f"{path}: expected a readable file, got: {got}"]) from error


def parse(text: str, path: Path) -> Manifest:
    """Read a manifest from text; `path` is what messages call it.

    Raises:
        ManifestError: lists every problem.
    """
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ManifestError([f"{path}: expected valid TOML, got: {error}"]) from error
    try:
        return Manifest.model_validate(data)
    except ValidationError as error:
        lines = [f"{path}: {_key(entry['loc'])}: {entry['msg']}" for entry in error.errors(include_url=False)]
        raise ManifestError(lines) from error


def _key(loc: tuple[str | int, ...]) -> str:
    """Spell a key as TOML would, with list positions in brackets, from 0."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{_quoted(part)}" for part in loc]
    return "".join(parts).removeprefix(".")


def _quoted(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)
