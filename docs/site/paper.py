"""How the pictures of the docs look: matplotlib's settings, and SVG files with colours for light and for dark pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.layout_engine import ConstrainedLayoutEngine

from re_bench_evaluation.report.html.svg import named_colour, series_colour, to_svg

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matplotlib.figure import Figure

INK, MUTED, GRID, PAPER = (named_colour(name) for name in ("ink", "muted", "grid", "surface"))
ACCENT, BAD, GOOD = (series_colour(index) for index in range(3))
_LIGHT = {
    "surface": "#ffffff",
    "ink": "#1f2328",
    "muted": "#59636e",
    "grid": "#d1d9e0",
    "series-0": "#0072b2",
    "series-1": "#c2410c",
    "series-2": "#007a5a",
}
_DARK = {
    "surface": "#14171c",
    "ink": "#e6e9ee",
    "muted": "#a3acb9",
    "grid": "#3a424d",
    "series-0": "#56b4e9",
    "series-1": "#ff8a3c",
    "series-2": "#2cc79a",
}


def styled() -> AbstractContextManager[None]:
    """Return a context in which figures look like ours."""
    context: AbstractContextManager[None] = mpl.rc_context(
        {
            "font.size": 9.5,
            "axes.edgecolor": MUTED,
            "axes.labelcolor": MUTED,
            "xtick.labelcolor": INK,
            "ytick.labelcolor": INK,
            "svg.fonttype": "none",
        }
    )
    return context


def roomy() -> ConstrainedLayoutEngine:
    """Return a layout that leaves a margin around everything."""
    return ConstrainedLayoutEngine(w_pad=0.14, h_pad=0.12)


def save(figure: Figure, name: str, title: str, description: str) -> str:
    """Return a figure as an SVG file that is readable on light and dark pages: it has a background of its own.

    Args:
        figure: in the colours of this module.
        name: of letters and hyphens.
        title: what is read out in its place.
        description: what one can see in it.
    """
    svg = str(to_svg(figure, name, title, description, {}))
    head, _, body = svg.partition(">")
    width, height = (f"{inches * 72:.0f}" for inches in figure.get_size_inches())
    paper = '<rect width="100%" height="100%" rx="6" fill="var(--surface)"/>'
    return f'{head} width="{width}pt" height="{height}pt">{style()}{paper}{body}\n'


def style() -> str:
    """Return the style element that gives our colours their values."""
    light, dark = (";".join(f"--{name}:{value}" for name, value in table.items()) for table in (_LIGHT, _DARK))
    return (
        f"<style>:root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
        "text{font-family:system-ui,'Segoe UI',Helvetica,Arial,sans-serif}</style>"
    )
