"""Records: what methods have reached on a task, for people; the file ``records.toml`` beside its manifest."""

import datetime as dt
import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args

from pydantic import Field

from re_bench.task.field_types import Line, ProfileName
from re_bench.task.table import Conflict, Table, as_list, get_in

FILE = "records.toml"
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
    records: tuple[Record, ...] = Field(strict=False)

    def raw_of(self, record: Record) -> float | None:
        """Return the raw score of a record; None for baseline and reference, which are the anchors'."""
        if record.value is None:
            return record.raw
        return math.log(record.value - self.floors.get(record.profile, 0.0))

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield records with two scores or none, values of nothing that is named, and values without a logarithm."""
        for index, record in enumerate(as_list(get_in(data, "records"))):
            loc = ("records", index)
            value, raw, kind = (get_in(record, key) for key in ("value", "raw", "kind"))
            if kind in ("baseline", "reference"):
                if value is not None or raw is not None:
                    yield loc, f"Input should have neither value nor raw, which anchors.toml has of every {kind}"
            elif (value is None) == (raw is None):
                yield loc, "Input should have either value or raw"
            if value is not None and get_in(data, "value") is None:
                yield (*loc, "value"), "Input should be left out, or the file should say what values are (value = ...)"
            floor = get_in(data, "floors", str(get_in(record, "profile"))) or 0.0
            if isinstance(value, float) and isinstance(floor, float) and value <= floor:
                yield (*loc, "value"), f"Input should be above the floor {floor}"
