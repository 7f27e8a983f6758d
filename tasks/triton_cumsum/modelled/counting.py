"""Counts what a kernel loads and stores, by replacing the memory functions of Triton's interpreter.

Every access of a kernel, through pointers, block pointers, descriptors or atomics, ends in one of four functions.
Each is wrapped: first the active addresses are checked against the memory of the kernel's own tensors, since the
interpreter follows any address it is given, then the bytes are counted, then the access happens.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
from codec import RefusedError
from operators import SECTOR
from triton.runtime import interpreter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_numpy_dtype = interpreter._get_np_dtype  # noqa: SLF001 - the interpreter's own table of types


class Counter:
    """The bytes that one launch moves, in total and for the program that moves the most."""

    def __init__(self, kernel: str, tensors: Iterable[Any]) -> None:
        self.kernel = kernel
        storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
        self.ranges = [(start, start + size) for start, size in storages.items()]
        self.program: tuple[int, int, int] | None = None
        self.bytes = 0
        self._largest = 0
        self._of_program = 0

    @property
    def program_bytes(self) -> int:
        """The bytes of the program that moved the most so far."""
        return max(self._largest, self._of_program)

    def start(self, program: tuple[int, int, int]) -> None:
        """Note that ``program`` runs from now on."""
        self._largest = self.program_bytes
        self.program, self._of_program = program, 0

    def access(self, pointers: Any, mask: Any, size: int, passes: int = 1) -> None:
        """Check and count an access of ``size`` bytes at each of ``pointers`` where ``mask`` holds.

        ``mask`` may also be a memoryview, which is what block pointers and descriptors hand over.

        Raises:
            IndexError: if an active address lies outside the kernel's tensors.
        """
        mask = np.asarray(mask)
        if pointers.size != mask.size:
            msg = f"{self}: {pointers.size} pointers and {mask.size} masks do not go together"
            raise RefusedError(msg)
        active = pointers.ravel() if mask.all() else pointers.ravel()[mask.ravel()]
        if active.size:
            self._check(active, size)
            moved = passes * traffic(active, size)
            self.bytes += moved
            self._of_program += moved

    def __str__(self) -> str:
        return f"kernel {self.kernel}, program {self.program}"

    def _check(self, active: Any, size: int) -> None:
        low, high = int(active.min()), int(active.max()) + size
        if any(start <= low and high <= stop for start, stop in self.ranges):
            return
        inside = np.zeros(active.shape, dtype=bool)
        for start, stop in self.ranges:
            # Not active + size: that could wrap around.
            inside |= (active >= np.uint64(start)) & (active <= np.uint64(max(stop - size, 0)))
        if not inside.all():
            msg = (
                f"{self}: {int((~inside).sum())} of {active.size} active lanes access memory outside of the tensors "
                "that were passed to the kernel; mask them"
            )
            raise IndexError(msg)


def traffic(addresses: Any, size: int) -> int:
    """Return the bytes moved for elements of ``size`` bytes at ``addresses``.

    Neighbours in order move exactly their bytes; anything else moves each distinct 32-byte sector once.
    """
    count = int(addresses.size)
    span = int(addresses[-1]) - int(addresses[0])
    if span == (count - 1) * size and bool(np.all(np.diff(addresses) == size)):
        return count * size
    return int(np.unique(addresses // np.uint64(SECTOR)).size) * SECTOR


@contextlib.contextmanager
def counted(counter: Counter) -> Iterator[None]:
    """Let ``counter`` see every access of the interpreter while the context lasts."""
    builder = interpreter.interpreter_builder
    replaced = _replacements(builder, counter)
    for name, function in replaced.items():
        setattr(builder, name, function)
    try:
        yield
    finally:
        for name in replaced:
            delattr(builder, name)


def cause_of(error: BaseException, counter: Counter) -> Exception:
    """Return what a kernel raised, out of the interpreter's wrapping, as an exception that names the program."""
    cause = error
    while isinstance(cause, interpreter.InterpreterError) and cause.__cause__ is not None:
        cause = cause.__cause__
    if isinstance(cause, IndexError | RefusedError) and str(cause).startswith("kernel "):
        return cause
    return RefusedError(f"{counter}: {type(cause).__name__}: {cause}")


def _replacements(builder: Any, counter: Counter) -> dict[str, Any]:
    stock = type(builder)

    def set_grid_idx(x: int, y: int, z: int) -> None:
        counter.start((x, y, z))
        stock.set_grid_idx(builder, x, y, z)

    def create_masked_load(  # noqa: PLR0917 - the interpreter's own signature
        ptrs: Any, mask: Any, other: Any, cache_modifier: Any, eviction_policy: Any, is_volatile: Any
    ) -> Any:
        counter.access(ptrs.data, mask.data, _numpy_dtype(ptrs.get_element_ty()).itemsize)
        if other is not None:
            _same_size(counter, ptrs, other)
        return stock.create_masked_load(builder, ptrs, mask, other, cache_modifier, eviction_policy, is_volatile)

    def create_masked_store(ptrs: Any, value: Any, mask: Any, cache_modifier: Any, eviction_policy: Any) -> Any:
        counter.access(ptrs.data, mask.data, value.data.dtype.itemsize)
        _same_size(counter, ptrs, value)
        return stock.create_masked_store(builder, ptrs, value, mask, cache_modifier, eviction_policy)

    def create_atomic_cas(ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        _same_size(counter, ptr, cmp, val)
        everywhere = np.ones(ptr.data.shape, dtype=bool)
        counter.access(ptr.data, everywhere, max(cmp.data.dtype.itemsize, val.data.dtype.itemsize), passes=2)
        return stock.create_atomic_cas(builder, ptr, cmp, val, sem, scope)

    def create_atomic_rmw(rmwOp: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:  # noqa: N803, PLR0917
        _same_size(counter, ptr, val)
        counter.access(ptr.data, mask.data, val.data.dtype.itemsize, passes=2)
        return stock.create_atomic_rmw(builder, rmwOp, ptr, val, mask, sem, scope)

    functions = (set_grid_idx, create_masked_load, create_masked_store, create_atomic_cas, create_atomic_rmw)
    return {function.__name__: function for function in functions}


def _same_size(counter: Counter, pointers: Any, *values: Any) -> None:
    for value in values:
        if value.data.size != pointers.data.size:
            msg = f"{counter}: {pointers.data.size} pointers and {value.data.size} values do not go together"
            raise RefusedError(msg)
