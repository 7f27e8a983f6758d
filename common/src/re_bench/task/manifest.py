"""What a task's manifest may say; :mod:`re_bench.task.manifest_file` reads it."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from pydantic import Field

from re_bench.limits import Bounds, Limits
from re_bench.task.anchors import AnchorList, Anchors, name_conflicts
from re_bench.task.field_types import (
    FileName,
    FileNames,
    FolderName,
    Line,
    ProfileName,
    ProfileNames,
    Regex,
    TaskId,
    Text,
    Words,
)
from re_bench.task.profile_names import is_profile
from re_bench.task.table import Conflict, Table, as_list, as_number, get_in

_TOLERANCE = 0.05


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
    """What draws the hidden truth, if it is not the same for all: see :mod:`re_bench.task.instance`."""
    in_run: bool = False
    """Whether every scoring measures the anchors beside the submission."""
    anchors: Anchors | None = None
    devices: AnchorList = ()
    models: AnchorList = ()

    def anchors_with(self, model: str) -> Anchors | None:
        """Return the anchors that were measured with a chat model."""
        return next((anchors for anchors in self.models if anchors.source.model == model), None)

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield stored anchors in the wrong place, and devices that have no name of their own."""
        in_run = data.get("in_run") is True
        if in_run and data.get("anchors") is not None:
            yield ("anchors",), "Input should be a list of devices instead, because in_run is true"
        if not in_run and data.get("devices"):
            yield ("devices",), "Input should be one table of anchors instead, because in_run is not true"
        if in_run and data.get("models"):
            yield ("models",), "Input should be left out, because in_run is true"
        for loc, text in name_conflicts(data.get("devices"), "hardware"):
            yield ("devices", *loc), text
        for loc, text in name_conflicts(data.get("models"), "model"):
            yield ("models", *loc), text


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

    command: Words
    time_limit_s: float = Field(gt=0)
    """Wall-clock seconds that the command may take."""


class ReferenceRecipe(Recipe):
    """How the reference makes what it submits, and how often that is checked."""

    repeats: int = Field(default=1, gt=0)
    """How often baseline and reference are scored, each with a seed of its own."""


class Model(Table):
    """The chat model that a task's submissions talk to, and the task's own stand-in for it."""

    name: Line
    aliases: tuple[Line, ...] = Field(default=(), strict=False)
    """Other names for the same model."""
    stand_in: Line
    """What makes the stand-in, as ``module:function``; it is called with ``held_out``, false for an agent's own calls,
    which get a stand-in that knows no held-out data."""
    key: tuple[ProfileName, ...] = Field(default=(), strict=False)
    """The profiles that need the real model, and so a key."""


class Meter(Table):
    """The program that makes and counts experiments outside of the sandbox."""

    module: Line
    request: Line
    """What a request looks like, in words."""
    profiles: tuple[ProfileName, ...] | None = Field(default=None, strict=False)
    """The profiles that have experiments; all of them if None."""


class Rebuild(Table):
    """The program that makes a task's computed truth anew."""

    program: Line
    """A file relative to the task's directory."""


class Expectation(Table):
    """How a cheat must fail."""

    expect: Literal["invalid", "no_better"]
    reason: Regex | None = None
    """What the message of an invalid attempt must match."""
    base: FileName | None = None
    """The directory, relative to the task's, of the solution that the cheat is at heart: ``no_better`` means no better
    than that one; None for the baseline."""


class Cheat(Expectation):
    """A checked-in submission that games the scorer, and how it must fail."""

    description: Line
    profiles: ProfileNames | None = None
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

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield expectations on profiles in which the cheat is not run."""
        profiles, on = data.get("profiles"), data.get("on")
        if profiles is None or not isinstance(on, Mapping):
            return
        for name in on:
            if is_profile(name) and name not in as_list(profiles):
                yield ("on", name), "Input should be left out, or the cheat's profiles should have this one too"


class Manifest(Table):
    """A task's manifest."""

    id: TaskId
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
    submission: FileNames
    """Files relative to the submission, at least one of which must be there."""
    shared_data: tuple[FileName, ...] = Field(default=(), strict=False)
    """Files and directories at the workspace's top that agents have no need to change, and that are no part of a
    submission: ``re-bench serve --link-data`` lets sessions share them."""
    staging: Bounds = Field(default_factory=Bounds)
    """What of a submission is copied before it is scored."""
    profiles: dict[ProfileName, Profile] = Field(default_factory=dict)
    published: tuple[Published, ...] = Field(default=(), strict=False)
    reference: ReferenceRecipe | None = None
    cheats: dict[FolderName, Cheat] = Field(default_factory=dict)
    model: Model | None = None
    meter: Meter | None = None
    rebuild: Rebuild | None = None
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

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield unusable names of staged files, and anchors of models where none is asked or the wrong way round."""
        yield from _staging_conflicts(data)
        for name in _names(data):
            if get_in(data, "profiles", name, "models") and name not in as_list(get_in(data, "model", "key")):
                yield ("profiles", name, "models"), "Input should be left out, because model.key has no such profile"
        direction = data.get("direction")
        if direction not in ("lower", "higher"):
            return
        side = "below" if direction == "lower" else "above"
        for loc in _all_anchors(data):
            starting, reference = (as_number(get_in(data, *loc, key)) for key in ("starting", "reference"))
            if starting is None or reference is None:
                continue
            if (reference > starting) if direction == "lower" else (reference < starting):
                reason = f"because direction is {direction}"
                yield (*loc, "reference"), f"Input should be a number {side} starting ({starting}), {reason}"


def _staging_conflicts(data: Mapping[str, Any]) -> Iterator[Conflict]:
    """Yield names that are none at a submission's top, or that leave out a file of ``submission``."""
    loc = ("staging", "names")
    entries = get_in(data, *loc)
    names = {index: entry for index, entry in enumerate(as_list(entries)) if isinstance(entry, str)}
    unusable = [index for index, name in names.items() if not _is_top_name(name.removeprefix("!"))]
    for index in unusable:
        yield (*loc, index), "Input should be the name of a file or directory at the submission's top, or ! and a name"
    if isinstance(entries, list | tuple) and not entries:
        yield loc, "Input should be a list that is not empty"
    elif not unusable and len({name.startswith("!") for name in names.values()}) > 1:
        yield loc, "Input should hold names that all begin with ! or all do not"
    bounds = Bounds(names=tuple(names.values()) or None)
    for file in as_list(get_in(data, "submission")):
        if isinstance(file, str) and not bounds.include(file.partition("/")[0]):
            yield loc, f"Input should include {file}, because it is in submission"


def _is_top_name(name: str) -> bool:
    return name not in ("", ".", "..") and "/" not in name and name.isprintable()


def _all_anchors(data: Mapping[str, Any]) -> Iterator[tuple[str | int, ...]]:
    """Yield where anchors are stored."""
    for name in _names(data):
        profile = ("profiles", name)
        yield (*profile, "anchors")
        for key in ("devices", "models"):
            yield from ((*profile, key, index) for index in range(len(as_list(get_in(data, *profile, key)))))


def _names(data: Mapping[str, Any]) -> list[str]:
    """Return the names of all profiles."""
    profiles = data.get("profiles")
    return [name for name in profiles if is_profile(name)] if isinstance(profiles, Mapping) else []
