"""Our compiled kernels are cached between runners of our solutions and go nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from re_bench.data.cache import cache_directory
from re_bench.limits import Limits
from re_bench.sandbox.bubblewrap import Bubblewrap
from re_bench.sandbox.process import run
from re_bench.sandbox.spec import SandboxSpec
from re_bench.sandbox.unprotected import Unprotected
from re_bench.task.hidden_paths import hidden_directories
from triton_cumsum.measured import kernel_cache as module
from triton_cumsum.measured.kernel_cache import INSIDE, KernelCache, kernel_cache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TASK = Path(__file__).parents[1]
# Triton's own store of files, which compiling goes through; a record of a group names the paths of its files.
PROGRAM = """
import sys
from triton.runtime.cache import get_cache_manager
cache = get_cache_manager("c0ffee")
if cache.get_group("kernel.json"):
    print("kept", open(cache.get_group("kernel.json")["kernel.cubin"]).read())
else:
    cache.put_group("kernel.json", {"kernel.cubin": cache.put("compiled", "kernel.cubin", binary=False)})
    print("made")
"""


@pytest.fixture
def solutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setenv("RE_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "version", lambda name: f"{name} 1")
    directories = [tmp_path / name for name in ("baseline", "reference")]
    for directory in directories:
        directory.mkdir()
        (directory / "solution.py").write_text(directory.name)
    return directories


def compile_once(solutions: Sequence[Path], *, keep: bool = True, content: str = "cubin") -> list[str]:
    """Have a runner find, make and keep; return what it found."""
    with kernel_cache(Bubblewrap(), solutions, "H200") as cache:
        copy = cache.writable[INSIDE]
        contents = [path.read_text() for path in sorted(copy.rglob("*.cubin"))]
        (copy / "key").mkdir(exist_ok=True)
        (copy / "key" / f"{content}.cubin").write_text(content)
        (copy / "tmp.pid_1_2").mkdir()
        if keep:
            cache.keep()
    assert not copy.exists()
    return contents


def kept_files(name: str = "*") -> list[Path]:
    return sorted(path for path in cache_directory().rglob(name) if path.is_file())


def test_what_one_runner_compiled_the_next_one_has(solutions: list[Path]) -> None:
    assert compile_once(solutions, keep=False) == []  # before our solutions have run
    assert compile_once(solutions) == []
    assert compile_once(solutions, content="written later") == ["cubin"]
    assert compile_once(solutions) == ["cubin"]
    assert [path.name for path in kept_files()] == ["cubin.cubin"]
    assert not list(cache_directory().rglob("*pid*"))
    assert all(path.stat().st_mode & 0o077 == 0 for path in (cache_directory() / "triton_cumsum" / "kernels").iterdir())


def test_another_text_of_our_solutions_or_another_version_has_its_own(
    solutions: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_once(solutions)
    (solutions[1] / "solution.py").write_text("another")
    assert compile_once(solutions) == []
    monkeypatch.setattr(module, "version", lambda name: f"{name} 2")
    assert compile_once(solutions) == []
    assert len(kept_files()) == 3


def test_the_second_of_two_that_compile_at_once_changes_nothing(tmp_path: Path) -> None:
    copies = [tmp_path / "a", tmp_path / "b"]
    for copy in copies:
        copy.mkdir()
    caches = [KernelCache(tmp_path / "kept" / "k", copy) for copy in copies]
    for cache, copy in zip(caches, copies, strict=True):
        (copy / copy.name).write_text(copy.name)
        cache.keep()
    assert [path.name for path in (tmp_path / "kept").rglob("*") if path.is_file()] == ["a"]
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_without_walls_or_a_cache_that_can_be_written_nothing_is_kept(solutions: list[Path], tmp_path: Path) -> None:
    with kernel_cache(Unprotected(), solutions, "H200") as cache:
        assert (cache.writable, cache.environment) == ({}, {})
        cache.keep()
    assert kept_files() == []
    (tmp_path / "cache").write_text("a file")
    assert compile_once(solutions) == compile_once(solutions) == []


@pytest.mark.integration
def test_a_runner_of_ours_reads_and_writes_it_and_a_submission_sees_neither(solutions: list[Path]) -> None:
    def printed(writable: Mapping[str, Path], environment: Mapping[str, str], program: str) -> Any:
        spec = SandboxSpec({}, writable, environment, limits=Limits(wall_s=60), hidden=hidden_directories(TASK))
        finished = run(Bubblewrap(), [Bubblewrap().python, "-I", "-c", program], spec)
        assert finished.status == 0, finished.stderr
        return finished.stdout.split()

    for expected in (["made"], ["kept", "compiled"]):
        with kernel_cache(Bubblewrap(), solutions, "H200") as cache:
            assert printed(cache.writable, cache.environment, PROGRAM) == expected
            cache.keep()
            places = [INSIDE, str(cache.writable[INSIDE]), str(kept_files("*.cubin")[0])]
            look = f"import os; print(*[os.path.exists(path) for path in {places}])"
            assert printed({}, {}, look) == ["False"] * 3
