"""What a task's manifest may say, and what methods have reached on it; :mod:`re_bench.task.manifest_file` reads both.

Keys are checked by pydantic, and its messages are those that authors read. What keys of one table must be to each other
is in the method ``conflicts`` of the table's class.
"""

import datetime as dt
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from re_bench.limits import Bounds, Limits
from re_bench.task.profile_names import is_profile

RECORDS = "records.toml"
"""The file with the records of a task."""
CHEAT = "cheat.toml"
"""The file in a cheat's folder that describes it."""
_TOLERANCE = 0.05

Conflict = tuple[tuple[str | int, ...], str]
"""Where something is wrong, as keys and positions, and what should be there."""


def _check_profile(value: str) -> str:
    if not is_profile(value):
        raise ValueError("should be cpu, gpu or paper, or one of these, a dash and a word")
    return value


def _check_text(value: str) -> str:
    if not value.strip():
        raise ValueError("should be text that is not empty")
    return value


def _check_line(value: str) -> str:
    if not value.strip() or value.splitlines() != [value]:
        raise ValueError("should be one line of text that is not empty")
    return value


def _check_file_name(value: str) -> str:
    path = PurePosixPath(value)
    plain = str(path) == value != "." and "\\" not in value and value.isprintable()
    if not plain or path.is_absolute() or ".." in path.parts:
        raise ValueError("should be a file's name relative to the submission, without .. and not absolute")
    return value


def _check_regex(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"should be a regular expression ({error})") from error
    return value


ProfileName = Annotated[str, AfterValidator(_check_profile)]
Text = Annotated[str, AfterValidator(_check_text)]
Line = Annotated[str, AfterValidator(_check_line)]
FileName = Annotated[str, AfterValidator(_check_file_name)]
FolderName = Annotated[str, Field(pattern="^[a-z][a-z0-9_-]*$")]
Regex = Annotated[str, AfterValidator(_check_regex)]


class Table(BaseModel):
    """A table of a manifest; a key that it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="after")
    def _check_conflicts(self) -> Self:
        errors = [
            InitErrorDetails(type=PydanticCustomError("conflict", "{text}", {"text": text}), loc=loc, input=None)
            for loc, text in self.conflicts()
        ]
        if errors:
            raise ValidationError.from_exception_data(type(self).__name__, errors)
        return self

    def conflicts(self) -> Iterator[Conflict]:
        """Yield the keys that do not fit together, though each may be right."""
        yield from ()


class Spread(Table):
    """The standard deviation of the raw score over the repeats, in the raw score's unit."""

    starting: float = Field(ge=0)
    reference: float = Field(ge=0)


class Source(Table):
    """Where anchors come from; all but published ones say how they were obtained."""

    kind: Literal["published", "measured", "modelled"]
    where: Text
    hardware: Line | None = None
    model: Line | None = None
    """The chat model that was asked, where the score depends on one."""
    date: dt.date | None = None
    repeats: int | None = Field(default=None, ge=1)
    spread: Spread | None = None
    versions: dict[str, str] | None = None
    """Versions of programs and packages, by name."""

    def conflicts(self) -> Iterator[Conflict]:
        """Yield what is missing because of ``kind``."""
        for key in ("hardware", "date", "repeats", "spread", "versions"):
            if self.kind != "published" and getattr(self, key) is None:
                yield (key,), f"required, because kind is {self.kind}"


class Anchors(Table):
    """The starting and the reference score, in the raw score's unit, and where they come from."""

    starting: float
    reference: float
    source: Source

    def conflicts(self) -> Iterator[Conflict]:
        """Yield that the two anchors are equal."""
        if self.starting == self.reference:
            yield ("reference",), "should differ from starting"


AnchorList = Annotated[tuple[Anchors, ...], Field(strict=False)]


def _name_conflicts(list_key: str, entries: Iterable[Anchors], key: Literal["hardware", "model"]) -> Iterator[Conflict]:
    """Yield the anchors of a list whose source names no device or model, or one that another entry has."""
    names: set[str] = set()
    for index, entry in enumerate(entries):
        name = entry.source.hardware if key == "hardware" else entry.source.model
        if name is None:
            yield (list_key, index, "source", key), "required, since it is the entry's name"
        elif name in names:
            yield (list_key, index, "source", key), "should be a name that no other entry has"
        else:
            names.add(name)


class Tolerance(Table):
    """How far from 0 and 1 the rewards of baseline and reference may be: half-widths, in rewards."""

    baseline: float = Field(default=_TOLERANCE, ge=0)
    reference: float = Field(default=_TOLERANCE, ge=0)


class Profile(Table):
    """A size at which the task runs.

    Its anchors are stored, and it has not been calibrated without them; or every scoring measures them anew
    (``in_run``), and those of named devices are stored for comparison. A profile that asks a real chat model has those
    of other ``models`` beside its own.
    """

    description: Line
    device: Literal["cpu", "cuda"]
    modelled: bool = False
    """Whether the raw score is modelled, not measured."""
    parallel: bool = False
    """Whether the raw score depends on no time, so that several scorings may run at once."""
    time_limit_s: float = Field(gt=0)
    """Wall-clock seconds after which a scoring ends all that runs of a submission, which is then invalid."""
    tolerance: Tolerance = Field(default_factory=Tolerance)
    limits: Limits = Field(default_factory=Limits)
    """What the process of a submission may use."""
    instance: Literal["chosen", "secret"] | None = None
    """What draws the hidden truth, if it is not the same for all: see :mod:`re_bench.task.choices`."""
    in_run: bool = False
    """Whether every scoring measures the anchors beside the submission."""
    anchors: Anchors | None = None
    devices: AnchorList = ()
    models: AnchorList = ()

    def anchors_with(self, model: str) -> Anchors | None:
        """Return the anchors that were measured with a chat model."""
        return next((anchors for anchors in self.models if anchors.source.model == model), None)

    def all_anchors(self) -> Iterator[tuple[tuple[str | int, ...], Anchors]]:
        """Yield all stored anchors, each with its place in the profile."""
        if self.anchors is not None:
            yield ("anchors",), self.anchors
        for key, entries in (("devices", self.devices), ("models", self.models)):
            for index, entry in enumerate(entries):
                yield (key, index), entry

    def conflicts(self) -> Iterator[Conflict]:
        """Yield stored anchors in the wrong place, and devices and models without a name of their own."""
        if self.in_run and self.anchors is not None:
            yield ("anchors",), "should be a list of devices instead, because in_run is true"
        if self.devices and not self.in_run:
            yield ("devices",), "should be one table of anchors instead, because in_run is not true"
        if self.models and self.in_run:
            yield ("models",), "should be left out, because in_run is true"
        yield from _name_conflicts("devices", self.devices, "hardware")
        yield from _name_conflicts("models", self.models, "model")


class Published(Table):
    """Anchors that somebody published, in the raw score's unit."""

    name: Line
    """The publication or port."""
    hardware: Text
    starting: float
    reference: float
    where: Text
    note: str = ""


class Recipe(Table):
    """How a solution makes what it submits: a command, run in the sandbox in the laid-out workspace."""

    command: Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
    time_limit_s: float = Field(gt=0)
    """Wall-clock seconds that the command may take."""


class ReferenceRecipe(Recipe):
    """How the reference makes what it submits, and how often that is checked."""

    repeats: int = Field(default=1, gt=0)
    """How often baseline and reference are scored, each with a seed of its own."""


class Model(Table):
    """The chat model that submissions talk to; :meth:`re_bench.api.Task.stand_in` makes the stand-in for it."""

    name: Line
    aliases: tuple[Line, ...] = Field(default=(), strict=False)
    """Other names for the same model."""
    key: tuple[ProfileName, ...] = Field(default=(), strict=False)
    """The profiles that need the real model, and so a key."""


class Meter(Table):
    """The experiments that :meth:`re_bench.api.Task.meter` makes and counts outside of the sandbox."""

    request: Line
    """What a request looks like, in words."""
    profiles: tuple[ProfileName, ...] | None = Field(default=None, strict=False)
    """The profiles that have experiments; all of them if None."""


class Image(Table):
    """What the agent's image has besides Python, the workspace and the instructions."""

    packages: tuple[Line, ...] = Field(default=(), strict=False)
    """Debian packages."""
    python: bool = False
    """Whether it has the Python packages of ``images/locks/TASK.txt``."""
    torch: bool = False
    """Whether it has torch."""


class Expectation(Table):
    """How a cheat must fail."""

    expect: Literal["invalid", "no_better"]
    reason: Regex | None = None
    """What the message of an invalid attempt must match."""
    derived_from: FileName | None = None
    """The directory, relative to the task's, of the solution that the cheat is derived from: ``no_better`` means no
    better than that one; None for the baseline."""


class Cheat(Expectation):
    """The ``cheat.toml`` of a checked-in submission that games the scorer: how it must fail."""

    description: Line
    profiles: Annotated[tuple[ProfileName, ...], Field(strict=False, min_length=1)] | None = None
    """The profiles in which the cheat makes sense; None for all."""
    make: Recipe | None = None
    on: dict[ProfileName, Expectation] = Field(default_factory=dict)
    """What to expect on single profiles instead."""

    def runs_on(self, profile: str) -> bool:
        """Tell whether the cheat makes sense in a profile."""
        return self.profiles is None or profile in self.profiles

    def expectation(self, profile: str) -> Expectation:
        """Return how the cheat must fail in a profile."""
        return self.on.get(profile, self)

    def conflicts(self) -> Iterator[Conflict]:
        """Yield expectations on profiles in which the cheat is not run."""
        for name in self.on:
            if not self.runs_on(name):
                yield ("on", name), "should be left out, or the cheat's profiles should include it"


class Manifest(Table):
    """What the files of a task say: ``task.toml``, ``anchors.toml``, ``records.toml`` and each ``cheat.toml``."""

    id: Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$")]
    title: Line
    description: Line
    version: int = Field(ge=1)
    direction: Literal["lower", "higher"]
    """Which raw score is better."""
    aggregation: Literal["min", "max", "last"]
    """How the raw scores of a run's attempts become one."""
    show_score: bool = True
    """Whether the agent may see its score."""
    unit: Line
    """The unit of the raw score."""
    resolution: float | None = Field(default=None, gt=0)
    """What raw scores are rounded to multiples of, in their unit; None keeps all digits, which may tell much."""
    submission: Annotated[tuple[FileName, ...], Field(strict=False, min_length=1)]
    """Files relative to the submission, at least one of which must be there."""
    shared_data: tuple[FileName, ...] = Field(default=(), strict=False)
    """Files and directories at the workspace's top that agents have no need to change, and that are no part of a
    submission: ``re-bench serve --link-data`` lets sessions share them."""
    staging: Bounds = Field(default_factory=Bounds)
    """What of a submission is copied before it is scored."""
    profiles: dict[ProfileName, Profile] = Field(default_factory=dict)
    published: tuple[Published, ...] = Field(default=(), strict=False)
    """From ``records.toml``."""
    reference: ReferenceRecipe | None = None
    cheats: dict[FolderName, Cheat] = Field(default_factory=dict)
    """From the files ``cheats/NAME/cheat.toml``."""
    model: Model | None = None
    meter: Meter | None = None
    image: Image = Field(default_factory=Image)
    programs: dict[Line, Line] = Field(default_factory=dict)
    """Programs that scorers and agents need besides Python, each with the Debian packages that bring it."""

    def anchors(self, profile: str) -> Anchors | None:
        """Return the anchors of a profile, or None if it has not been calibrated yet or measures them in every run.

        Raises:
            KeyError: if the task has no such profile.
        """
        if profile not in self.profiles:
            raise KeyError(f"{self.id} has no profile {profile!r}; it has: {', '.join(self.profiles) or 'none yet'}")
        return self.profiles[profile].anchors

    def asks_model(self, profile: str) -> bool:
        """Tell whether a profile asks a real chat model."""
        return self.model is not None and profile in self.model.key

    def refusals(self, profile: str) -> tuple[tuple[str, str], ...]:
        """Return the cheats that a profile refuses for a reason, each with what the message has to match."""
        expected = {name: cheat.expectation(profile) for name, cheat in self.cheats.items() if cheat.runs_on(profile)}
        return tuple((name, entry.reason) for name, entry in expected.items() if entry.reason)

    def with_model(self, name: str) -> Self:
        """Return the manifest with another chat model, which the names of its own lead to as well.

        The profiles that ask a real model have the anchors that were measured with this one, or none. The manifest's
        own model changes nothing.

        Raises:
            ValueError: if the task has no chat model.
        """
        if self.model is None:
            raise ValueError(f"{self.id} has no chat model")
        names = (self.model.name, *self.model.aliases)
        if name in names:
            return self
        asking = {key: entry for key, entry in self.profiles.items() if self.asks_model(key)}
        others = {key: entry.model_copy(update={"anchors": entry.anchors_with(name)}) for key, entry in asking.items()}
        model = self.model.model_copy(update={"name": name, "aliases": names})
        return self.model_copy(update={"model": model, "profiles": self.profiles | others})

    def conflicts(self) -> Iterator[Conflict]:
        """Yield unusable names of staged files, and anchors of models where none is asked or the wrong way round."""
        yield from self._staging_conflicts()
        side = "below" if self.direction == "lower" else "above"
        for name, profile in self.profiles.items():
            if profile.models and not self.asks_model(name):
                yield ("profiles", name, "models"), "should be left out, because model.key has no such profile"
            for loc, anchors in profile.all_anchors():
                if (anchors.reference < anchors.starting) != (self.direction == "lower"):
                    reason = f"should be {side} starting ({anchors.starting}), because direction is {self.direction}"
                    yield ("profiles", name, *loc, "reference"), reason

    def _staging_conflicts(self) -> Iterator[Conflict]:
        """Yield names that are none at a submission's top, or that leave out a file of ``submission``."""
        loc, names = ("staging", "names"), self.staging.names
        if names is None:
            return
        for index, name in enumerate(names):
            top = name.removeprefix("!")
            if top in ("", ".", "..") or "/" in top or not top.isprintable():
                yield (*loc, index), "should be the name of a file or directory at the top, with or without a !"
        if not names:
            yield loc, "should not be empty"
        elif len({name.startswith("!") for name in names}) > 1:
            yield loc, "should hold names that all begin with ! or all do not"
        for file in self.submission:
            if not self.staging.include(file.partition("/")[0]):
                yield loc, f"should include {file}, because it is in submission"


Kind = Literal["baseline", "simple", "reference", "best", "ceiling"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Record(Table):
    """What a method reached; what is not known is left out."""

    profile: ProfileName
    kind: Kind
    """A simple method, the best result seen, or the most that can be had; baseline and reference are the anchors'."""
    method: Line
    value: float | None = None
    """The task's own figure, such as a loss, of which the raw score is the logarithm above the floor."""
    raw: float | None = None
    """The raw score, where it is no logarithm of a value."""
    seconds: Line | None = None
    """What making the solution took, as a number or a range."""
    hardware: Line | None = None
    spread: float | None = Field(default=None, ge=0)
    """The standard deviation of the raw score."""
    n: int | None = Field(default=None, ge=1)
    """Runs that ``value`` or ``raw`` is the mean of."""
    date: dt.date | None = None


class Records(Table):
    """The file ``records.toml`` of a task."""

    value: Line | None = None
    """What the values are, with their unit."""
    floors: dict[ProfileName, float] = Field(default_factory=dict)
    """What is taken from the values of a profile before the logarithm; 0 if it is not here."""
    published: tuple[Published, ...] = Field(default=(), strict=False)
    records: tuple[Record, ...] = Field(default=(), strict=False)

    def raw_of(self, record: Record) -> float | None:
        """Return the raw score of a record; None for baseline and reference, which are the anchors'."""
        if record.value is None:
            return record.raw
        return math.log(record.value - self.floors.get(record.profile, 0.0))

    def conflicts(self) -> Iterator[Conflict]:
        """Yield records with two scores or none, values of nothing that is named, and values without a logarithm."""
        for index, record in enumerate(self.records):
            loc, value, floor = ("records", index), record.value, self.floors.get(record.profile, 0.0)
            if record.kind in ("baseline", "reference"):
                if value is not None or record.raw is not None:
                    yield loc, f"should have neither value nor raw: anchors.toml has those of every {record.kind}"
            elif (value is None) == (record.raw is None):
                yield loc, "should have either value or raw"
            if value is not None and self.value is None:
                yield (*loc, "value"), "should be left out, or the file should say what values are (value = ...)"
            if value is not None and value <= floor:
                yield (*loc, "value"), f"should be above the floor {floor}"
