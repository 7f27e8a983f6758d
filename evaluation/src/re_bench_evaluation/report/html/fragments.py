"""Each run of a report as a part of its page, with its attempts as text that the browser parses when it is asked for.

A page of 20,000 attempts is quick because what nobody has opened is no part of its document yet: it stands in a
``noscript`` element, which browsers without JavaScript show, or, in a large report, compressed in a ``script`` element
of data.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2 import Environment

    from re_bench_evaluation.report.data import ReportData
    from re_bench_evaluation.report.html.series import Series
    from re_bench_evaluation.report.run_data import RunInfo

_PLAIN = 5_000_000
"""So many characters attempts may have in a page as they are; more are compressed."""


@dataclass(frozen=True)
class PackedRuns:
    """All runs of a page."""

    fragments: tuple[Markup, ...]
    compressed: bool


class RunRows:
    """What renders the runs of one report."""

    def __init__(self, environment: Environment, data: ReportData, series: Series) -> None:
        self._attempts = environment.get_template("attempts.html.j2")
        module = environment.get_template("run.html.j2").make_module({"data": data, "series": series})
        self._row: Callable[..., Markup] = vars(module)["row"]
        self._runs = data.runs

    def compressed(self, run: RunInfo) -> Markup:
        """Return one run with its attempts compressed."""
        return self._row(run, run_id(run), _deflated(self._attempts.render(run=run)))

    def pack(self, *, compressed: bool) -> PackedRuns:
        """Return all runs, with attempts ``compressed`` in any case or where there is much of them."""
        texts = [self._attempts.render(run=run) for run in self._runs]
        compressed = compressed or sum(map(len, texts)) > _PLAIN
        wrap = _deflated if compressed else _in_noscript
        rows = (self._row(run, run_id(run), wrap(text)) for run, text in zip(self._runs, texts, strict=True))
        return PackedRuns(tuple(rows), compressed)


def run_id(run: RunInfo) -> str:
    """Return the name of a run's element: the same for the same run in every report."""
    return f"run-{hashlib.sha256(run.key.encode(errors='surrogatepass')).hexdigest()[:16]}"


def _in_noscript(html: str) -> Markup:
    return Markup(f"<noscript>{html}</noscript>")  # noqa: S704 - rendered by a template


def _deflated(html: str) -> Markup:
    packed = base64.b64encode(zlib.compress(html.encode())).decode()
    return Markup(f'<script type="text/plain">{packed}</script>')  # noqa: S704 - letters of base64
