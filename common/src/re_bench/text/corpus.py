"""The documents of the corpus: pinned wheels, and the docstrings or sources of their modules in a fixed order.

The order is that of the wheels given and of the sorted paths inside each. Nothing depends on the file system, on hash
seeds, or on how many processes share the work.
"""

from __future__ import annotations

import ast
import gc
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import warnings
import zipfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from re_bench.data.files import sha256_of
from re_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True)
class Wheel:
    """One wheel file, the same bytes on every platform."""

    name: str
    version: str
    file: str
    sha256: str

    @property
    def requirement(self) -> str:
        """The line that makes pip take this file and no other."""
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"


@cache
def pinned_wheels() -> tuple[Wheel, ...]:
    """Return the wheels of ``wheels.toml``, in the order in which their text is read."""
    text = Path(__file__).with_name("wheels.toml").read_text(encoding="utf-8")
    return tuple(Wheel(**entry) for entry in tomllib.loads(text)["wheels"])


def find_wheels(wheels: Sequence[Wheel], store: Path, folder: Path | None = None) -> list[Path]:
    """Return where each wheel lies: in ``folder``, or in ``store``, into which missing ones are fetched with pip.

    Raises:
        UsageError: if a file is not the pinned one, or is missing and cannot be fetched.
    """
    if folder is not None and not folder.is_dir():
        raise UsageError(f"{folder}: not a directory; give the folder that holds the wheels")
    folders = [store] if folder is None else [folder, store]
    missing = [wheel for wheel in wheels if not any((path / wheel.file).is_file() for path in folders)]
    if missing:
        fetch(missing, store)
    return [_checked(wheel, folders) for wheel in wheels]


def fetch(wheels: Sequence[Wheel], store: Path) -> None:
    """Fetch wheels into ``store`` with pip, from wherever pip is set up to look.

    Raises:
        UsageError: if ``store`` cannot be made, or pip does not get them all.
    """
    try:
        store.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{store}: missing, and cannot be made there ({error.strerror}); set RE_BENCH_CACHE elsewhere"
        ) from None
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=store) as incoming:
        requirements = Path(incoming) / "requirements.txt"
        requirements.write_text("".join(f"{wheel.requirement}\n" for wheel in wheels), encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
        command += ["--retries", "1", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
        done = subprocess.run(
            [*command, "--dest", incoming, "-r", str(requirements)], check=False, capture_output=True, text=True
        )
        if done.returncode != 0:
            names = ", ".join(wheel.file for wheel in wheels)
            raise UsageError(
                f"missing {names}, and pip cannot fetch it ({_reason(done.stderr)}); give a folder: --wheels DIR"
            )
        for path in Path(incoming).glob("*.whl"):
            shutil.move(path, store / path.name)


def _checked(wheel: Wheel, folders: Sequence[Path]) -> Path:
    path = next((folder / wheel.file for folder in folders if (folder / wheel.file).is_file()), None)
    if path is None:
        raise UsageError(f"pip fetched another file than {wheel.file}; give a folder that holds it: --wheels DIR")
    if (actual := sha256_of(path)) != wheel.sha256:
        raise UsageError(
            f"{path}: SHA-256 {actual}, pinned is {wheel.sha256}; delete this file, or give another folder"
        )
    return path


def _reason(stderr: str) -> str:
    """Return the last error of pip, which comes after warnings and before hints."""
    errors = [line.removeprefix("ERROR: ") for line in stderr.splitlines() if line.startswith("ERROR: ")]
    return (errors or [stderr.strip() or "no reason given"])[-1].splitlines()[-1]


_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings_of(source: str) -> list[str]:
    """Return the docstrings of module, classes and functions, cleaned, in the order of the source.

    A source that does not parse has none.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # escapes that old code has wrong
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    texts = [_docstring(tree)]
    waiting: list[ast.AST] = [*reversed(tree.body)]
    while waiting:
        statement = waiting.pop()
        texts.append(_docstring(statement))
        for field in ("finalbody", "orelse", "handlers", "cases", "body"):
            waiting.extend(reversed(getattr(statement, field, ())))
    return [text for text in texts if text]


def clean(docstring: str) -> str:
    """Return a docstring without the indentation of its code, trailing spaces, and empty lines at its ends.

    Lone surrogates, which UTF-8 cannot hold, become question marks.
    """
    lines = docstring.encode("utf-8", "replace").decode().expandtabs().split("\n")
    indents = [len(line) - len(line.lstrip(" ")) for line in lines[1:] if line.strip()]
    margin = min(indents, default=0)
    return "\n".join([lines[0].strip(), *(line[margin:].rstrip() for line in lines[1:])]).strip("\n")


def _docstring(node: ast.AST) -> str:
    if not isinstance(node, _DOCUMENTED) or not node.body:
        return ""
    match node.body[0]:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return clean(text)
    return ""


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
