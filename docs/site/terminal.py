"""Draw a terminal that shows the text of a session."""

from __future__ import annotations

from html import escape

_HEIGHT, _WIDTH, _SIZE = 17, 7.25, 12
_PAPER, _INK, _GOOD, _BAD, _MUTED = "#0d1117", "#e6edf3", "#56d364", "#ff7b72", "#9198a1"


def draw_session(text: str) -> str:
    """Return the picture of a session as SVG; the first line of ``text`` is the title and the date."""
    title, *lines = text.rstrip("\n").split("\n")
    width = max(map(len, [title, *lines])) * _WIDTH + 36
    height = (len(lines) + 3) * _HEIGHT
    rows = "".join(_row(line, 3.2 + index) for index, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
        f'height="{height}" role="img"><title>{escape(title)}</title>'
        f"<style>text{{font:{_SIZE}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        "white-space:pre}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{_PAPER}" stroke="#3d444d"/>'
        f'<text x="18" y="{1.4 * _HEIGHT:.0f}" fill="{_MUTED}">{escape(title)}</text>{rows}</svg>\n'
    )


def _row(line: str, row: float) -> str:
    """Return the SVG of a line, with a fixed width so that columns stay aligned in any monospaced font."""
    if not line.strip():
        return ""
    colour = _GOOD if line.startswith(("baseline", "reference")) else _MUTED if line.startswith("[") else _INK
    colour = _BAD if "FAILED" in line else colour
    indent = len(line) - len(line.lstrip())
    text = line.strip()
    return (
        f'<text x="{18 + indent * _WIDTH:g}" y="{row * _HEIGHT:.0f}" fill="{colour}" '
        f'textLength="{len(text) * _WIDTH:g}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
    )
