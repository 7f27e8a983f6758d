"""Define the look of the pictures in the docs: matplotlib settings, colours, and SVG output."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.layout_engine import ConstrainedLayoutEngine

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matplotlib.figure import Figure

INK, MUTED, GRID = "#1f2328", "#59636e", "#d1d9e0"
ACCENT, BAD, GOOD = "#0072b2", "#c2410c", "#007a5a"
_DECIMALS = re.compile(r"(\.\d)\d{3,}")
"""Matches numbers with many decimals, which are truncated to one."""
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


def styled() -> AbstractContextManager[None]:
    """Return a context manager that sets matplotlib's options for figures of the docs."""
    context: AbstractContextManager[None] = mpl.rc_context(
        {
            "font.size": 9.5,
            "font.sans-serif": ["DejaVu Sans", "Verdana"],
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
    """Return a figure as SVG, with a title and a description for screen readers; ``name`` makes ids reproducible."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA | {"Title": title, "Description": description})
    return " ".join(_DECIMALS.sub(r"\1", buffer.getvalue()).split()) + "\n"
