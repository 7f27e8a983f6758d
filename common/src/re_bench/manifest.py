"""The manifest of a task, `task.toml`: what it may say and how it is read.

Every field's description is what a person who left it out is told to supply, so it is written as a noun phrase.
"""

import datetime as dt
import errno
import json
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from re_bench.errors import ReBenchError
from re_bench.isolation import limits
from re_bench.manifest_words import Conflict, Table, said, unknown_key

PROFILES = ("cpu", "gpu", "paper")
"""The sizes at which a task may run."""

_TOLERANCE = 0.05
_DEFAULT = limits.Limits()
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class ManifestError(ReBenchError, ValueError):
    """A manifest is unusable; the message has one line for each problem, also in `problems`."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def _require(words: str, *, holds: bool) -> None:
    if not holds:
        raise ValueError(words)


def _note(value: str) -> str:
    # TOML files are UTF-8, which has no lone surrogates.
    _require("text that UTF-8 can hold", holds=not any("\ud800" <= char <= "\udfff" for char in value))
    return value


def _text(value: str) -> str:
    _require("text that is not empty", holds=value.strip() != "")
    return _note(value)


def _line(value: str) -> str:
    one = value.strip() != "" and value.splitlines() == [value]
    _require("one line of text that is not empty", holds=one)
    return _note(value)


def _id(value: str) -> str:
    words = "a name of lower-case letters, digits and _ that begins with a letter"
    _require(words, holds=re.fullmatch(r"[a-z][a-z0-9_]*", value) is not None)
    return value


def _cheat_name(value: str) -> str:
    words = "the name of a folder: lower-case letters, digits, _ and -, beginning with a letter"
    _require(words, holds=re.fullmatch(r"[a-z][a-z0-9_-]*", value) is not None)
    return value


def _file_name(value: str) -> str:
    path = PurePosixPath(value)
    plain = str(path) == value != "." and "\\" not in value and value.isprintable()
    words = "the name of a file relative to the submission, without .. and not absolute"
    _require(words, holds=plain and not path.is_absolute() and ".." not in path.parts)
    return value


def _regex(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        msg = f"a regular expression ({error})"
        raise ValueError(msg) from error
    return _note(value)


def _profile_name(value: str) -> str:
    if value not in PROFILES:
        raise said(unknown_key(value, PROFILES))
    return value


Note = Annotated[str, AfterValidator(_note)]
Text = Annotated[str, AfterValidator(_text)]
Line = Annotated[str, AfterValidator(_line)]
_Files = Annotated[tuple[Annotated[str, AfterValidator(_file_name)], ...], Field(strict=False, min_length=1)]
_Words = Annotated[tuple[Note, ...], Field(strict=False, min_length=1)]


def _at(data: object, *path: str) -> object:
    """Follow keys through tables, read or not yet; None where the way ends."""
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else getattr(data, key, None)
    return data


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


class Spread(Table):
    """The standard deviation of the raw score over the repeats, in the raw score's unit."""

    starting: float = Field(ge=0, description="the standard deviation of the baseline's raw score")
    reference: float = Field(ge=0, description="the standard deviation of the reference's raw score")


class Source(Table):
    """Where anchors come from; all but published ones say how they were obtained."""

    kind: Literal["published", "measured", "modelled"] = Field(
        description="one of 'published', 'measured' or 'modelled'"
    )
    where: Text = Field(description="text that says where the anchors come from")
    hardware: Line | None = Field(default=None, description="the name of the hardware")
    date: dt.date | None = Field(default=None, description="the date, such as 2026-01-31")
    repeats: int | None = Field(default=None, ge=1, description="the number of repeats")
    spread: Spread | None = Field(default=None, description="a table with the spread of starting and reference")
    versions: dict[str, Note] | None = Field(default=None, description="a table of program versions")

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield what must be there because of ``kind``."""
        if data.get("kind") in ("measured", "modelled"):
            for key in ("hardware", "date", "repeats", "spread", "versions"):
                if data.get(key) is None:
                    words = cls.model_fields[key].description
                    yield (key,), f"expected {words}, because kind is {data['kind']}, got nothing"


class Anchors(Table):
    """The starting and the reference score, in the raw score's unit, and where they come from."""

    starting: float = Field(description="the raw score of the baseline, a number")
    reference: float = Field(description="the raw score of the reference, a number")
    source: Source = Field(description="a table that says where the anchors come from")

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield that the two anchors are equal."""
        starting, reference = _number(data.get("starting")), _number(data.get("reference"))
        if starting is not None and starting == reference:
            yield ("reference",), f"expected a number other than starting, got {reference}"


class Limits(Table):
    """What the process of a submission may use; the defaults are those of :class:`re_bench.isolation.limits.Limits`."""

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
    """A size at which the task runs; without anchors it has not been calibrated yet."""

    description: Line = Field(description="one line that says what runs")
    device: Literal["cpu", "cuda"] = Field(description="one of 'cpu' or 'cuda'")
    modelled: bool = Field(default=False, description="true if the raw score is modelled, not measured")
    time_limit_s: float = Field(gt=0, description="the wall-clock seconds that one whole scoring may take")
    tolerance: Tolerance = Field(default_factory=Tolerance, description="a table of tolerances")
    limits: Limits = Field(default_factory=Limits, description="a table of limits")
    anchors: Anchors | None = Field(default=None, description="a table of anchors")


class Published(Table):
    """Anchors that somebody published, in the raw score's unit."""

    name: Line = Field(description="the name of the publication or port")
    hardware: Text = Field(description="the hardware, as far as it is known")
    starting: float = Field(description="the published starting score, a number")
    reference: float = Field(description="the published reference score, a number")
    where: Text = Field(description="text that says where they were published")
    note: Note = Field(default="", description="what else to know")


class Reference(Table):
    """How the reference makes its artefact, run in the sandbox in the laid-out workspace as an agent would."""

    command: _Words = Field(description="a list of the command and its arguments")
    time_limit_s: float = Field(gt=0, description="the wall-clock seconds that the command may take")


class Cheat(Table):
    """A checked-in submission that games the scorer, and how it must fail."""

    description: Line = Field(description="one line that says what the cheat tries")
    expect: Literal["invalid", "no_better"] = Field(description="one of 'invalid' or 'no_better'")
    reason: Annotated[str, AfterValidator(_regex)] | None = Field(
        default=None, description="a regular expression that the message of an invalid attempt must match"
    )


class Manifest(Table):
    """A task's manifest."""

    id: Annotated[str, AfterValidator(_id)] = Field(description="the task's id, such as ai_rd_example")
    title: Line = Field(description="one line of text")
    description: Line = Field(description="one line that says what the task is")
    version: int = Field(ge=1, description="a whole number of at least 1")
    direction: Literal["lower", "higher"] = Field(description="one of 'lower' or 'higher'")
    aggregation: Literal["min", "max", "last"] = Field(description="one of 'min', 'max' or 'last'")
    show_score: bool = Field(default=True, description="whether the agent may see its score")
    unit: Line = Field(description="the unit of the raw score, such as ln(milliseconds)")
    submission: _Files = Field(
        description="a list of file names relative to the submission, at least one of which must be there"
    )
    profiles: dict[Annotated[str, AfterValidator(_profile_name)], Profile] = Field(
        default_factory=dict, description="a table of profiles"
    )
    published: Annotated[tuple[Published, ...], Field(strict=False)] = Field(
        default=(), description="a list of published anchors"
    )
    reference: Reference | None = Field(default=None, description="a table that says how the reference is made")
    cheats: dict[Annotated[str, AfterValidator(_cheat_name)], Cheat] = Field(
        default_factory=dict, description="a table of cheats"
    )

    def anchors(self, profile: str) -> Anchors | None:
        """Return the anchors of a profile, or None if it has not been calibrated yet.

        Raises:
            KeyError: if the task has no such profile.
        """
        if profile not in self.profiles:
            msg = f"{self.id} has no profile {profile!r}; it has: {', '.join(self.profiles) or 'none yet'}"
            raise KeyError(msg)
        return self.profiles[profile].anchors

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield anchors that lie the wrong way round for ``direction``."""
        direction = data.get("direction")
        for name in PROFILES:
            starting, reference = (
                _number(_at(data, "profiles", name, "anchors", key)) for key in ("starting", "reference")
            )
            if starting is None or reference is None or direction not in ("lower", "higher"):
                continue
            if (reference > starting) if direction == "lower" else (reference < starting):
                side = "below" if direction == "lower" else "above"
                why = f"a number {side} starting ({starting}), because direction is {direction}"
                yield ("profiles", name, "anchors", "reference"), f"expected {why}, got {reference}"


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
