"""The anchors in a manifest: two scores, where they come from, and the devices they were measured on."""

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from re_bench.task.manifest_errors import Conflict, Table, at, listed, number
from re_bench.task.manifest_values import Line, Note, Text


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
        starting, reference = number(data.get("starting")), number(data.get("reference"))
        if starting is not None and starting == reference:
            yield ("reference",), f"expected a number other than starting, got {reference}"


def device_conflicts(devices: object) -> Iterator[Conflict]:
    """Yield the anchors of a list that name no device, or one that another entry has."""
    names: list[object] = []
    for index, entry in enumerate(listed(devices)):
        name = at(entry, "source", "hardware")
        problem = _unnamed(entry) if name is None else _repeated(name, names)
        if problem:
            yield (index, "source", "hardware"), problem
        names.append(name)


def _unnamed(entry: object) -> str:
    """Say that the device has no name, unless its source says so itself or is not there."""
    said_already = at(entry, "source") is None or at(entry, "source", "kind") in ("measured", "modelled")
    return "" if said_already else "expected the name of the device, got nothing"


def _repeated(name: object, names: Sequence[object]) -> str:
    return f"expected a name that no other entry has, got {json.dumps(name, default=str)}" if name in names else ""
