"""Anchors: two scores, where they come from, and the devices they were measured on."""

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from re_bench.task.field_types import Line, Text
from re_bench.task.table import Conflict, Table, as_list, as_number, get_in

_MEASURED = ("measured", "modelled")


class Spread(Table):
    """The standard deviation of the raw score over the repeats, in the raw score's unit."""

    starting: float = Field(ge=0)
    reference: float = Field(ge=0)


class Source(Table):
    """Where anchors come from; all but published ones say how they were obtained."""

    kind: Literal["published", "measured", "modelled"]
    where: Text
    hardware: Line | None = None
    date: dt.date | None = None
    repeats: int | None = Field(default=None, ge=1)
    spread: Spread | None = None
    versions: dict[str, str] | None = None
    """Versions of programs and packages, by name."""

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield what must be there because of ``kind``."""
        if data.get("kind") in _MEASURED:
            for key in ("hardware", "date", "repeats", "spread", "versions"):
                if data.get(key) is None:
                    yield (key,), f"Field required, because kind is {data['kind']}"


class Anchors(Table):
    """The starting and the reference score, in the raw score's unit, and where they come from."""

    starting: float
    reference: float
    source: Source

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield that the two anchors are equal."""
        starting = as_number(data.get("starting"))
        if starting is not None and starting == as_number(data.get("reference")):
            yield ("reference",), "Input should differ from starting"


AnchorList = Annotated[tuple[Anchors, ...], Field(strict=False)]


def device_conflicts(devices: object) -> Iterator[Conflict]:
    """Yield the anchors of a list that name no device, or one that another entry has."""
    names: list[object] = []
    for index, entry in enumerate(as_list(devices)):
        name, kind = get_in(entry, "source", "hardware"), get_in(entry, "source", "kind")
        if name in names:
            yield (index, "source", "hardware"), "Input should be a name that no other entry has"
        elif name is None and get_in(entry, "source") is not None and kind not in _MEASURED:  # else the source says so
            yield (index, "source", "hardware"), "Field required, the name of the device"
        names += [] if name is None else [name]
