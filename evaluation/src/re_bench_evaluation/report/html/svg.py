"""Turn a figure of matplotlib into an SVG element that takes its colours from the page and needs no style of its own.

The page's Content-Security-Policy allows no style attributes; what matplotlib writes there becomes attributes of SVG.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import matplotlib as mpl
from markupsafe import Markup

from re_bench_evaluation.report.html.text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"
_PRECISE = re.compile(r"-?\d+\.\d+")
_COLOUR = re.compile(r"#0001([0-9a-f]{2})")
_COLOURS = ("ink", "muted", "grid", "surface")
_SERIES = 0x10
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))

SERIES = 7
"""How many colours there are for lines; ``report.css`` gives them a value for light and for dark pages."""


def series_colour(index: int) -> str:
    """Return what stands for a line's colour in a figure."""
    return f"#0001{_SERIES + index % SERIES:02x}"


def named_colour(name: str) -> str:
    """Return what stands in a figure for the colour ``ink``, ``muted``, ``grid`` or ``surface`` of the page."""
    return f"#0001{_COLOURS.index(name):02x}"


def to_svg(figure: Figure, key: str, title: str, description: str, tooltips: Mapping[str, str]) -> Markup:
    """Return a figure as an SVG element for a page.

    Args:
        figure: in the colours of this module.
        key: a name that no other figure of the page has, of letters, digits and hyphens.
        title: what is read out in its place.
        description: what one can see in it.
        tooltips: a text for each group of the figure that has one of these ids.
    """
    buffer = io.StringIO()
    figure.patch.set_visible(False)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": key}):
        figure.savefig(buffer, format="svg", transparent=True, metadata=_NO_METADATA)
    ET.register_namespace("", _SVG)
    root = ET.fromstring(buffer.getvalue())  # noqa: S314 - matplotlib's
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{{{_SVG}}}style":
                parent.remove(child)
    for element in root.iter():
        _simplify(element, tooltips)
        element.tail = None
        element.text = (element.text or "").strip()
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib.update({"id": key, "class": "plot", "role": "img", "aria-labelledby": f"{key}-title {key}-text"})
    root.insert(0, _text("desc", f"{key}-text", description))
    root.insert(0, _text("title", f"{key}-title", title))
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704 - serialised, hence escaped


def _simplify(element: ET.Element, tooltips: Mapping[str, str]) -> None:
    """Turn an element's style into attributes, shorten its numbers, and take away ids that nothing refers to."""
    for pair in element.attrib.pop("style", "").split(";"):
        name, _, value = (part.strip() for part in pair.partition(":"))
        if name and name != "font-family":
            element.set(name, _COLOUR.sub(_variable, value))
    for name in ("d", "x", "y", "transform"):
        if name in element.attrib:
            element.set(name, " ".join(_PRECISE.sub(_shorter, element.attrib[name]).split()))
    if _LINK in element.attrib:
        element.set("href", element.attrib.pop(_LINK))
    if element.tag == f"{{{_SVG}}}g":
        tooltip = tooltips.get(element.attrib.pop("id", ""))
        if tooltip is not None:
            element.set("class", "run")
            element.insert(0, _text("title", None, tooltip))


def _text(tag: str, name: str | None, content: str) -> ET.Element:
    element = ET.Element(f"{{{_SVG}}}{tag}", {} if name is None else {"id": name})
    element.text = str(visible(content))
    return element


def _variable(match: re.Match[str]) -> str:
    index = int(match[1], 16)
    return f"var(--{_COLOURS[index]})" if index < _SERIES else f"var(--series-{index - _SERIES})"


def _shorter(match: re.Match[str]) -> str:
    return f"{float(match[0]):.1f}".removesuffix(".0")
