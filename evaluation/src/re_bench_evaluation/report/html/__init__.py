"""A report as HTML: one file, static pages, or a page that a server on this machine keeps up to date."""

from __future__ import annotations

from re_bench_evaluation.report.html.page import render

__all__ = ["render"]
