"""Text out of wheels: docstrings, or whole sources, of every module in a fixed order.

The order is that of the wheels given and of the sorted paths inside each. Nothing depends on the file system, on hash
seeds, or on how many processes share the work.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import zipfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from re_bench.text.docstrings import docstrings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

Variant = Literal["docstrings", "sources"]

MINIMUM: dict[Variant, int] = {"docstrings": 40, "sources": 200}
"""The least number of characters of a document; shorter ones say little."""

_CHUNK = 64  # modules that a process takes at a time


@dataclass(frozen=True)
class Module:
    """The documents of one module."""

    path: str
    """Within the wheel."""
    documents: tuple[str, ...]


def read_modules(wheels: Sequence[Path], variant: Variant, processes: int | None = None) -> Iterator[Module]:
    """Yield every module of the wheels with its documents, in order; a module may have none.

    Files that are not UTF-8, and for docstrings those that do not parse, are left out.

    Args:
        wheels: paths of wheel files.
        variant: docstrings or whole sources.
        processes: how many work; all cores for docstrings, whose parsing takes time, and one for sources, if None.
            They are spawned, so that a program that calls this must have its main part under ``__name__``'s guard.
    """
    work = [(wheel, paths, variant) for wheel in wheels for paths in _chunks(wheel)]
    processes = processes or (os.cpu_count() or 1 if variant == "docstrings" else 1)
    if processes == 1 or len(work) == 1:
        for chunk in work:
            yield from _read(chunk)
        return
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for modules in pool.map(_read, work):
            yield from modules


def unique(modules: Iterable[Module]) -> Iterator[Module]:
    """Yield the modules without documents that came before, word for word, in the same module or an earlier one."""
    seen: set[str] = set()
    for module in modules:
        new = [text for text in dict.fromkeys(module.documents) if text not in seen]
        seen.update(new)
        yield Module(module.path, tuple(new))


def _chunks(wheel: Path) -> list[list[str]]:
    with zipfile.ZipFile(wheel) as archive:
        paths = sorted(name for name in archive.namelist() if name.endswith(".py"))
    return [paths[start : start + _CHUNK] for start in range(0, len(paths), _CHUNK)]


def _read(work: tuple[Path, list[str], Variant]) -> list[Module]:
    wheel, paths, variant = work
    collecting = gc.isenabled()
    gc.disable()  # syntax trees are large and without cycles: collections take long and find nothing
    try:
        with zipfile.ZipFile(wheel) as archive:
            return [Module(path, _documents(archive.read(path), variant)) for path in paths]
    finally:
        if collecting:
            gc.enable()


def _documents(content: bytes, variant: Variant) -> tuple[str, ...]:
    try:
        source = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        return ()
    texts = docstrings_of(source) if variant == "docstrings" else [source.strip()]
    return tuple(text for text in texts if len(text) >= MINIMUM[variant])
