"""Triton's compiled kernels of our own solutions, kept from one scoring to the next.

Compiling the reference takes as long as many of its turns. What is kept was compiled in a sandbox in which only our
code runs, before anything of the submission was loaded, and lies in the cache of prepared data, which no submission's
sandbox shows. Each scoring's runner of our solutions gets a copy, and no other process gets either.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.data.cache import cache_directory, cache_key
from re_bench.data.files import sha256_of
from re_bench.processes import temporary_directory
from re_bench.sandbox.bubblewrap import Bubblewrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from re_bench.sandbox.spec import Backend

INSIDE = "/kernels"
"""Where the runner has its copy; Triton's own records in it name this path."""
_STORE = "triton_cumsum/kernels"


class KernelCache:
    """A copy of the kept kernels for one runner, or nothing.

    Args:
        kept: the directory of the kept ones, which may not be there yet; None to keep none.
        copy: an empty directory for the copy.
    """

    def __init__(self, kept: Path | None, copy: Path) -> None:
        self._kept, self._copy = kept, copy
        self.writable: dict[str, Path] = {}
        """What the runner's sandbox shows of it, as :class:`SandboxSpec` takes it."""
        self.environment: dict[str, str] = {}
        """The variables by which Triton finds it there."""
        if kept is not None:
            self.writable, self.environment = {INSIDE: copy}, {"TRITON_CACHE_DIR": INSIDE}
            with suppress(FileNotFoundError, NotADirectoryError):  # not kept yet, or never
                shutil.copytree(kept, copy, dirs_exist_ok=True)
            for directory, _names, files in os.walk(copy):  # the runner may run as another user
                Path(directory).chmod(0o777)
                for file in files:
                    Path(directory, file).chmod(0o644)

    def keep(self) -> None:
        """Keep what the runner has compiled, unless kernels are kept already; a cache that cannot be written has none.

        To be called while the runner has run no code but ours, and has compiled all that it will.
        """
        if self._kept is None or self._kept.is_dir() or not any(self._copy.iterdir()):
            return
        with suppress(OSError):
            self._kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            filling = Path(tempfile.mkdtemp(prefix=".filling-", dir=self._kept.parent))
            try:
                shutil.copytree(self._copy, filling, dirs_exist_ok=True, ignore=shutil.ignore_patterns("tmp.pid_*"))
                filling.chmod(0o700)
                filling.rename(self._kept)  # fails where another scoring was first
            finally:
                shutil.rmtree(filling, ignore_errors=True)


@contextmanager
def kernel_cache(backend: Backend, solutions: Sequence[Path], hardware: str) -> Iterator[KernelCache]:
    """Have a cache for a runner of ``solutions``, which are ours.

    Nothing is kept but with bubblewrap: without walls a submission could write to it, and what a container's user has
    written may not be ours to remove.

    Args:
        backend: the sandbox of the runner.
        solutions: directories with a ``solution.py`` each; other kernels are kept for other texts of these.
        hardware: name of the GPU.
    """
    with temporary_directory("re-bench-kernels-") as directory:
        copy = directory / "copy"
        copy.mkdir()
        if not isinstance(backend, Bubblewrap):
            yield KernelCache(None, copy)
            return
        texts = [sha256_of(solution / "solution.py") for solution in solutions]
        key = cache_key(texts, hardware, backend.python, *(version(name) for name in ("triton", "torch")))
        yield KernelCache(cache_directory() / _STORE / key, copy)
