"""Anchors: two scores, where they come from, and the devices or models that they were measured with."""

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
    model: Line | None = None
    """The chat model that was asked, where the score depends on one."""
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


def name_conflicts(entries: object, key: Literal["hardware", "model"]) -> Iterator[Conflict]:
    """Yield the anchors of a list whose source names no device or model, or one that another entry has."""
    names: list[object] = []
    for index, entry in enumerate(as_list(entries)):
        name, kind = get_in(entry, "source", key), get_in(entry, "source", "kind")
        reported = key == "hardware" and kind in _MEASURED  # by the source itself
        if name in names:
            yield (index, "source", key), "Input should be a name that no other entry has"
        elif name is None and get_in(entry, "source") is not None and not reported:
            yield (index, "source", key), f"Field required, the name of the {'device' if key == 'hardware' else key}"
        names += [] if name is None else [name]
