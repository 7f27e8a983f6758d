"""Cache the compiled Triton kernels of our own solutions between scoring runs.

Compiling the reference takes as long as many of its turns. The kernels are compiled in a sandbox that runs only our
code, before the submission is loaded, and stored in the cache of prepared data, which no submission's sandbox shows.
Only the runner of our solutions gets a copy.
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
"""Path of the copy inside the runner's sandbox; it is fixed because Triton's records contain it."""
_STORE = "triton_cumsum/kernels"


class KernelCache:
    """A copy of the cached kernels for one runner.

    Args:
        kept: the cache directory, which may not exist yet; None to disable the cache.
        copy: an empty directory for the copy.
    """

    def __init__(self, kept: Path | None, copy: Path) -> None:
        self._kept, self._copy = kept, copy
        self.writable: dict[str, Path] = {}
        """The writable mounts for :class:`SandboxSpec`."""
        self.environment: dict[str, str] = {}
        """The environment variables that make Triton use the copy."""
        if kept is not None:
            self.writable, self.environment = {INSIDE: copy}, {"TRITON_CACHE_DIR": INSIDE}
            with suppress(FileNotFoundError, NotADirectoryError):  # nothing is cached yet
                shutil.copytree(kept, copy, dirs_exist_ok=True)
            for directory, _names, files in os.walk(copy):  # the runner may run as another user
                Path(directory).chmod(0o777)
                for file in files:
                    Path(directory, file).chmod(0o644)

    def keep(self) -> None:
        """Store the compiled kernels, unless kernels are cached already or the cache is not writable.

        Call this method when the runner has compiled everything, and has run only our code.
        """
        if self._kept is None or self._kept.is_dir() or not any(self._copy.iterdir()):
            return
        with suppress(OSError):
            self._kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            filling = Path(tempfile.mkdtemp(prefix=".filling-", dir=self._kept.parent))
            try:
                shutil.copytree(self._copy, filling, dirs_exist_ok=True, ignore=shutil.ignore_patterns("tmp.pid_*"))
                filling.chmod(0o700)
                filling.rename(self._kept)  # fails if another scoring run was faster
            finally:
                shutil.rmtree(filling, ignore_errors=True)


@contextmanager
def kernel_cache(backend: Backend, solutions: Sequence[Path], hardware: str) -> Iterator[KernelCache]:
    """Return a kernel cache for a runner of ``solutions``, which must be ours, inside the ``with`` block.

    Kernels are only cached with bubblewrap: without a sandbox, a submission could write to the cache, and files written
    by a container's user may not be removable.

    Args:
        backend: the sandbox backend of the runner.
        solutions: directories with one ``solution.py`` each; the files' text is part of the cache key.
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
