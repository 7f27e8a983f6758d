"""Results in formats of other programs: an installed package reads them, and a report is made of what it wrote.

A package names a :class:`Reader` in the entry point group :data:`GROUP`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol

from re_bench.processes import temporary_directory
from re_bench_evaluation.report.sources import Source, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from re_bench_evaluation.report.task_data import Problem

GROUP = "re_bench.report_readers"
"""The entry points whose values are readers."""


class Reader(Protocol):
    """Reads results of one format."""

    def reads(self, path: Path) -> bool:
        """Tell whether a file or directory is of this format, by a quick look; nothing of it can be believed."""

    def write(self, paths: Sequence[Path], directory: Path) -> list[Problem]:
        """Write results as evaluations, whose files ``docs/evaluations.md`` lists.

        Args:
            paths: all paths of one report that are of this format, so that what is in several counts once.
            directory: empty, and gone when the report is made. It gets a directory for each evaluation; names that
                begin with a dot are for the reader's own files.

        Returns:
            What could not be read, by the path that it was asked for or one below that.

        Raises:
            ReBenchError: if nothing can be read here.
            OSError: if ``directory`` cannot be written.
        """


def reader_of(path: Path) -> Reader | None:
    """Return what reads a path; None if it is of no format that any package reads.

    Raises:
        OSError: if it cannot be looked at.
    """
    return next((reader for reader in _installed() if reader.reads(path)), None)


def _installed() -> Iterator[Reader]:
    """Yield the readers; one that cannot be imported counts as not installed."""
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        with suppress(ImportError):
            yield entry.load()


def open_with(reader: Reader, paths: Sequence[Path], stack: ExitStack) -> tuple[list[Source], list[Problem]]:
    """Return the evaluations in results of another format, which are there until ``stack`` is closed.

    Args:
        reader: of the format.
        paths: the results.
        stack: closes what is opened.

    Raises:
        ReBenchError: as the reader does.
        OSError: if nothing can be written for the time being.
    """
    directory = stack.enter_context(temporary_directory("re-bench-report-"))
    problems = reader.write(paths, directory)
    shown = str(paths[0]) if len(paths) == 1 else os.path.commonpath([path.absolute() for path in paths])
    sources = []
    for evaluation in sorted(path for path in directory.iterdir() if not path.name.startswith(".")):
        source = open_source(evaluation)
        if source is not None:
            source.show_as(shown)
            source.kept = False
            sources.append(source)
    return sources, problems
