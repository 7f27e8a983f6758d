"""The colours of lines can be told apart with any colour vision, and everything can be read."""

from __future__ import annotations

import itertools
import re
from importlib import resources

import numpy as np
import pytest

_CSS = resources.files("re_bench_evaluation.report.html").joinpath("templates", "report.css").read_text()
_LIGHT, _DARK = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in _CSS.split("@media screen")[:2])
_TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
# Machado, Oliveira and Fernandes (IEEE TVCG 15, 2009), full severity, on linear RGB.
_VISIONS = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def _linear(colour: str) -> np.ndarray:
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def _contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2.2."""
    low, high = sorted(float(_TO_XYZ[1] @ _linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def _lab(linear: np.ndarray) -> np.ndarray:
    x, y, z = (_TO_XYZ @ np.clip(linear, 0, 1)) / np.array([0.9505, 1.0, 1.089])
    fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


@pytest.mark.parametrize("theme", [_LIGHT, _DARK], ids=["light", "dark"])
@pytest.mark.parametrize("vision", _VISIONS)
def test_any_two_lines_can_be_told_apart(theme: dict[str, str], vision: str) -> None:
    lines = [_lab(_VISIONS[vision] @ _linear(theme[f"series-{number}"])) for number in range(7)]
    distances = {(i, j): float(np.linalg.norm(lines[i] - lines[j])) for i, j in itertools.combinations(range(7), 2)}
    assert min(distances.values()) > 10, {pair: round(d, 1) for pair, d in distances.items() if d <= 10}


@pytest.mark.parametrize("theme", [_LIGHT, _DARK], ids=["light", "dark"])
def test_lines_and_texts_stand_out_from_the_page(theme: dict[str, str]) -> None:
    for number in range(7):
        assert _contrast(theme[f"series-{number}"], theme["surface"]) >= 3
    for text in ("ink", "muted", "link", "good", "bad"):
        for surface in ("surface", "raised"):
            assert _contrast(theme[text], theme[surface]) >= 4.5, (text, surface)
    for text, surface in (("note-ink", "note"), ("ink", "added"), ("ink", "removed"), ("bad", "note")):
        assert _contrast(theme[text], theme[surface]) >= 4.5, (text, surface)
