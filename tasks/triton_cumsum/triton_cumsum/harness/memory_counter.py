"""Checks and counts what a kernel loads and stores, by replacing the memory functions of Triton's interpreter.

Every access of a kernel, through pointers, block pointers, descriptors or atomics, ends in one of four functions.
Each is wrapped: first the active addresses are checked against the memory of the kernel's own tensors, since the
interpreter follows any address it is given, then the access is counted, then it happens. What a kernel computes is
counted by :mod:`work_counter`.
"""

from __future__ import annotations

import contextlib
import types
from typing import TYPE_CHECKING, Any

import numpy as np
from re_bench.guest.refused import RefusedError
from triton._C.libtriton import ir
from triton.runtime import interpreter

from triton_cumsum.harness import coalescing
from triton_cumsum.harness.device import H200
from triton_cumsum.harness.fast_types import numpy_dtype
from triton_cumsum.harness.sector_cache import SECTOR, WORD, Cache, are_joined
from triton_cumsum.harness.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Program = tuple[int, int, int]

COUNTS = ("bytes", "operations", "scanned", "reduced", "exchanged", "lines", "partial", "polls", "waits")
"""What is counted of a launch: bytes to and from memory; then, in 32-bit words, results of elementwise operations,
elements of scans and of reductions across threads, and elements that move between threads or come from a cache; lines
of 128 bytes that the instructions of loads look up, and sectors that an instruction writes but in part; loads, times
the warps, of what this launch has stored; and how often a program waits for a scan or reduction, a load or an
atomic."""
WARPS = 4
"""Of a program, unless the launch says otherwise."""


class BoundsChecker:
    """Checks that the accesses of one launch stay within the memory of its tensors, and counts nothing."""

    def __init__(self, kernel: str, tensors: Iterable[Any]) -> None:
        self.kernel = kernel
        storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
        self.ranges = [(start, start + size) for start, size in storages.items()]
        self.program: Program | None = None

    def __str__(self) -> str:
        return f"kernel {self.kernel}, program {self.program}"

    def start(self, program: Program) -> None:
        """Note that ``program`` runs from now on."""
        self.program = program

    def load(self, pointers: Any, mask: Any, size: int, *, cached: bool = True) -> None:
        """Check a load of ``size`` bytes at each of ``pointers`` where ``mask`` holds.

        ``mask`` may also be a memoryview, which is what block pointers and descriptors hand over.

        Raises:
            IndexError: if an active address lies outside the kernel's tensors.
        """
        del cached
        self._active(pointers, mask, size)

    def store(self, pointers: Any, mask: Any, size: int) -> None:
        """Check a store, as :meth:`load` does."""
        self._active(pointers, mask, size)

    def atomic(self, pointers: Any, mask: Any, size: int, *, changes: bool = True) -> None:
        """Check an atomic access, as :meth:`load` does; without ``changes`` it only reads."""
        del changes
        self._active(pointers, mask, size)

    def seen(self, pointers: Any, mask: Any, size: int, values: Any) -> Any:
        """Return what a load of ``values`` gives to the program that runs: here, the values."""
        del pointers, mask, size
        return values

    def _active(self, pointers: Any, mask: Any, size: int) -> Any:
        mask = np.asarray(mask)
        if pointers.size != mask.size:
            raise RefusedError(f"{self}: {pointers.size} pointers and {mask.size} masks do not go together")
        active = pointers.ravel() if mask.all() else pointers.ravel()[mask.ravel()]
        if active.size:
            self._check(active, size)
        return active

    def _check(self, active: Any, size: int) -> None:
        low, high = int(active.min()), int(active.max()) + size
        if any(start <= low and high <= stop for start, stop in self.ranges):
            return
        inside = np.zeros(active.shape, dtype=bool)
        for start, stop in self.ranges:
            # Not active + size: that could wrap around.
            inside |= (active >= np.uint64(start)) & (active <= np.uint64(max(stop - size, 0)))
        if not inside.all():
            raise IndexError(
                f"{self}: {int((~inside).sum())} of {active.size} active lanes access memory outside of the tensors "
                "that were passed to the kernel; mask them"
            )


class Counter(BoundsChecker):
    """Also counts :data:`COUNTS` of one launch, in total and, each, for the program that has the most of it."""

    def __init__(self, kernel: str, tensors: Iterable[Any], warps: int = WARPS) -> None:
        super().__init__(kernel, tensors)
        self.warps = warps
        self.opaque = False
        """Whether Triton does not know which of the next pointers are neighbours."""
        self.spread = 1
        """Over how many times more threads than need be the loads of the program that runs have spread neighbours."""
        self._cache = Cache(self.ranges)
        self._timeline = Timeline(H200)
        self._total = dict.fromkeys(COUNTS, 0)
        self._largest = dict.fromkeys(COUNTS, 0)
        self._programs = 0
        self.own = dict.fromkeys(COUNTS, 0)
        """The counts of the program that runs."""

    def counts(self) -> dict[str, float]:
        """Return the total counts, ``programs``, and the largest programs' counts under names after ``program_``.

        ``span`` is the time at which the last program ends, ``span_slope`` by how much another one moves it; see
        :class:`timeline.Timeline`.
        """
        self._timeline.stop(self.own)
        self._end_program()
        largest = {f"program_{name}": count for name, count in self._largest.items()}
        span, slope = self._timeline.spans()
        return self._total | {"programs": self._programs, "span": span, "span_slope": slope} | largest

    def start(self, program: Program) -> None:
        """Note that ``program`` runs from now on."""
        if self._programs:
            self._timeline.stop(self.own)
        self._timeline.start()
        self._end_program()
        self._cache.clear()
        self.spread = 1
        self._programs += 1
        super().start(program)

    def load(self, pointers: Any, mask: Any, size: int, *, cached: bool = True) -> None:
        """Check and count a load: sectors that the program has not loaded lately; without ``cached``, all."""
        active = self._active(pointers, mask, size)
        self.own["waits"] += 1
        if active.size:
            joined = are_joined(active, size)
            missing, hits = self._cache.load(active, joined=joined)
            self.own["lines"] += self._lines(pointers, mask, size, joined=joined)
            if cached and pointers.size * size >= coalescing.VECTOR * coalescing.LANES * self.warps:
                self.spread = max(self.spread, self._spread(pointers, mask, size, joined=joined))
            self.own["bytes"] += SECTOR * (missing if cached else missing + hits)
            self.own["exchanged"] += SECTOR // WORD * (hits if cached else 0)

    def store(self, pointers: Any, mask: Any, size: int) -> None:
        """Check and count a store; see :meth:`sector_cache.Cache.store`."""
        active = self._active(pointers, mask, size)
        if active.size:
            self.own["bytes"] += self._cache.store(active, size)
            self.own["partial"] += self._partial(pointers, mask, size, joined=are_joined(active, size))
            self._timeline.store(active, size, self.own)

    def atomic(self, pointers: Any, mask: Any, size: int, *, changes: bool = True) -> None:
        """Check and count an atomic access: each lane reads and writes a sector, for lanes are not joined."""
        active = self._active(pointers, mask, size)
        self.own["waits"] += 1
        self.own["bytes"] += 2 * SECTOR * int(active.size)
        if changes:
            self._timeline.store(active, size, self.own, atomic=True)

    def seen(self, pointers: Any, mask: Any, size: int, values: Any) -> Any:
        """Return what the program sees of ``values``, which other programs may not have stored by its time."""
        seen, asked = self._timeline.load(pointers, np.asarray(mask).reshape(-1), size, values, self.own)
        self.own["polls"] += asked * self.warps
        return seen

    def _lines(self, pointers: Any, mask: Any, size: int, *, joined: bool) -> int:
        if joined and self._plain(pointers):
            return -(-int(np.count_nonzero(mask)) * size // coalescing.LINE)
        layouts = self._instructions(pointers, mask, size)
        return max(coalescing.lines(addresses, active) for addresses, active, _ in layouts)

    def _spread(self, pointers: Any, mask: Any, size: int, *, joined: bool) -> int:
        if joined and self._plain(pointers):
            return 1
        return coalescing.VECTOR // min(taken for _, _, taken in self._instructions(pointers, mask, size))

    def _partial(self, pointers: Any, mask: Any, size: int, *, joined: bool) -> int:
        if joined and self._plain(pointers):
            active = pointers.reshape(-1)[np.asarray(mask).reshape(-1)]
            return coalescing.partial_ends(active[:1], active[-1:] + np.uint64(size))
        return max(coalescing.partial_sectors(*layout) for layout in self._instructions(pointers, mask, size))

    def _plain(self, pointers: Any) -> bool:
        """Whether neighbours in order are so in each layout that Triton may take."""
        axes = sum(length > 1 for length in pointers.shape)
        return axes <= 1 or (axes == 2 and not self.opaque)  # noqa: PLR2004 - rows and columns

    def _instructions(self, pointers: Any, mask: Any, size: int) -> list[tuple[Any, Any, int]]:
        mask = np.asarray(mask).reshape(pointers.shape)
        return coalescing.instructions(pointers, mask, size, self.warps, opaque=self.opaque)

    def _end_program(self) -> None:
        for name, count in self.own.items():
            self._total[name] += count
            self._largest[name] = max(self._largest[name], count)
        self.own = dict.fromkeys(COUNTS, 0)


@contextlib.contextmanager
def intercepted(checker: BoundsChecker) -> Iterator[None]:
    """Let ``checker`` see every access of the interpreter while the context lasts."""
    with replaced_in_builder(_replacements(interpreter.interpreter_builder, checker)):
        yield


@contextlib.contextmanager
def replaced_in_builder(functions: dict[str, Any]) -> Iterator[None]:
    """Let the interpreter call ``functions`` in the place of its builder's own, by name, while the context lasts."""
    own = vars(interpreter.interpreter_builder)
    before = {name: own[name] for name in functions if name in own}
    own.update(functions)
    try:
        yield
    finally:
        for name in functions:
            del own[name]
        own.update(before)


def cause_of(error: BaseException, checker: BoundsChecker) -> Exception:
    """Return what a kernel raised, out of the interpreter's wrapping, as an exception that names the program."""
    cause = error
    while isinstance(cause, interpreter.InterpreterError) and cause.__cause__ is not None:
        cause = cause.__cause__
    if isinstance(cause, IndexError | RefusedError) and str(cause).startswith("kernel "):
        return cause
    return RefusedError(f"{checker}: {type(cause).__name__}: {cause}")


def _replacements(builder: Any, checker: BoundsChecker) -> dict[str, Any]:
    # What is there now, which may be another checker's.
    names = ("set_grid_idx", "create_masked_load", "create_masked_store", "create_atomic_cas", "create_atomic_rmw")
    stock = types.SimpleNamespace(**{name: getattr(builder, name) for name in names})

    def set_grid_idx(x: int, y: int, z: int) -> None:
        checker.start((x, y, z))
        stock.set_grid_idx(x, y, z)

    def create_masked_load(  # noqa: PLR0917 - the interpreter's own signature
        ptrs: Any, mask: Any, other: Any, cache_modifier: Any, eviction_policy: Any, is_volatile: Any
    ) -> Any:
        cached = not is_volatile and str(cache_modifier or "").rpartition(".")[2] in {"", "NONE", "CA"}
        checker.load(ptrs.data, mask.data, numpy_dtype(ptrs.get_element_ty()).itemsize, cached=cached)
        if other is not None:
            _same_size(checker, ptrs, other)
        loaded = stock.create_masked_load(ptrs, mask, other, cache_modifier, eviction_policy, is_volatile)
        loaded.data = checker.seen(ptrs.data, mask.data, loaded.data.dtype.itemsize, loaded.data)
        return loaded

    def create_masked_store(ptrs: Any, value: Any, mask: Any, cache_modifier: Any, eviction_policy: Any) -> Any:
        checker.store(ptrs.data, mask.data, value.data.dtype.itemsize)
        _same_size(checker, ptrs, value)
        return stock.create_masked_store(ptrs, value, mask, cache_modifier, eviction_policy)

    def create_atomic_cas(ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        _same_size(checker, ptr, cmp, val)
        everywhere = np.ones(ptr.data.shape, dtype=bool)
        size, changes = max(cmp.data.dtype.itemsize, val.data.dtype.itemsize), not np.array_equal(cmp.data, val.data)
        checker.atomic(ptr.data, everywhere, size, changes=changes)
        result = stock.create_atomic_cas(ptr, cmp, val, sem, scope)
        if not changes:
            result.data = checker.seen(ptr.data, everywhere, size, result.data)
        return result

    def create_atomic_rmw(rmwOp: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:  # noqa: N803, PLR0917
        _same_size(checker, ptr, val)
        size, changes = val.data.dtype.itemsize, str(rmwOp) not in _IDLE or bool(np.any(val.data))
        checker.atomic(ptr.data, mask.data, size, changes=changes)
        result = stock.create_atomic_rmw(rmwOp, ptr, val, mask, sem, scope)
        if not changes:
            result.data = checker.seen(ptr.data, mask.data, size, result.data)
        return result

    functions = (set_grid_idx, create_masked_load, create_masked_store, create_atomic_cas, create_atomic_rmw)
    return {function.__name__: function for function in functions}


# With a value of zero these only read.
_IDLE = {str(getattr(ir.ATOMIC_OP, name)) for name in ("ADD", "FADD", "OR", "XOR")}


def _same_size(checker: BoundsChecker, pointers: Any, *values: Any) -> None:
    for value in values:
        if value.data.size != pointers.data.size:
            raise RefusedError(
                f"{checker}: {pointers.data.size} pointers and {value.data.size} values do not go together"
            )
