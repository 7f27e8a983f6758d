"""Counts what a kernel computes, by replacing functions of Triton's interpreter; see :data:`memory_counter.COUNTS`.

Every function of the language ends in one of the builder's, or is a scan or a reduction. What is known is counted as
what it is: elementwise operations, scans, reductions, elements that move between threads. What moves nothing between
threads and computes nothing is free. The rest, now or in a later Triton, is counted as the dearest: a scan.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from triton_cumsum.harness.coalescing import LANES
from triton_cumsum.harness.memory_counter import Counter, intercepted, replaced_in_builder
from triton_cumsum.harness.sector_cache import WORD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VECTOR = 16
"""Bytes of neighbours that one thread loads at once, and so holds: a scan or reduction within them stays in a thread
(PTX ISA, vectorised ld.global)."""
COMBINES = 4
"""How often a scan combines each element on a GPU, about: once or twice within a thread and, for each fourth element,
the last of its thread, five times across a warp and some times across warps."""

DEAR = 5
"""How often a scan from the end counts, and one along an axis of several, unless each thread holds at most
:data:`HELD` elements of the block, as the reference's do: fitted to `reversed`, `rows` and `rows_of_4`."""
HELD = 8
HELD_BY_FUNCTION = 32
"""A scan by a function of the kernel's own counts as :data:`DEAR` if a thread holds more: fitted to `xor_scan`."""
REGISTERS = 65_536
"""Of a multiprocessor, in 32-bit words; a thread has at most 255 (CUDA C++ Programming Guide, compute capabilities)."""

_ELEMENTWISE = """
binary_op cast_impl create_addptr create_erf create_fabs create_fma create_fp_to_fp create_idiv create_rsqrt
create_umulhi ternary_op unary_op
"""
_MOVING = "create_cat create_join create_reshape create_split create_trans"
_FREE = """
create_advance create_assert create_assume create_barrier create_bitcast create_broadcast create_expand_dims
create_get_num_programs create_get_program_id create_int_to_ptr create_make_block_ptr create_make_range
create_make_tensor_descriptor create_ptr_to_int create_splat create_unsplat
"""
_MEMORY = """
create_atomic_cas create_atomic_rmw create_descriptor_gather create_descriptor_load create_descriptor_scatter
create_descriptor_store create_load create_masked_load create_masked_store create_store create_tensor_pointer_load
create_tensor_pointer_store
"""
_SHAPING = "create_bitcast create_broadcast create_expand_dims create_int_to_ptr create_ptr_to_int"
_ACCESSES = "create_masked_load create_masked_store"
_LINEAR = (np.add, np.subtract, np.multiply, np.left_shift)
"""Through these Triton knows which elements are neighbours; through a few more, which here count as if it did not."""
# They do nothing but call one of the elementwise functions on the builder, where they are counted.
_FORWARDING = """
create_add create_and create_ashr create_ceil create_clampf create_cos create_exp create_exp2 create_fadd create_fcmpOEQ
create_fcmpOGE create_fcmpOGT create_fcmpOLE create_fcmpOLT create_fcmpONE create_fcmpUEQ create_fcmpUGE create_fcmpUGT
create_fcmpULE create_fcmpULT create_fcmpUNE create_fdiv create_floor create_fmul create_fp_ext create_fp_to_si
create_fp_to_ui create_fp_trunc create_frem create_fsub create_iabs create_icmpEQ create_icmpNE create_icmpSGE
create_icmpSGT create_icmpSLE create_icmpSLT create_icmpUGE create_icmpUGT create_icmpULE create_icmpULT create_int_cast
create_log create_log2 create_lshr create_maximumf create_maxnumf create_maxsi create_maxui create_minimumf
create_minnumf create_minsi create_minui create_mul create_or create_precise_divf create_precise_sqrt create_sdiv
create_select create_shl create_si_to_fp create_sin create_sqrt create_srem create_sub create_udiv create_ui_to_fp
create_urem create_xor
"""
_KNOWN = frozenset(f"{_ELEMENTWISE} {_MOVING} {_FREE} {_MEMORY} {_FORWARDING} create_dot".split())


@contextlib.contextmanager
def counted(counter: Counter) -> Iterator[None]:
    """Let ``counter`` see every access and all work of the interpreter while the context lasts."""
    scan, reduction = interpreter.ScanOps.apply_impl, interpreter.ReduceOps.apply_impl
    interpreter.ScanOps.apply_impl = _scan(counter, scan)
    interpreter.ReduceOps.apply_impl = _reduction(counter, reduction)
    try:
        with intercepted(counter), replaced_in_builder(_replacements(counter)):
            yield
    finally:
        interpreter.ScanOps.apply_impl = scan
        interpreter.ReduceOps.apply_impl = reduction


def _replacements(counter: Counter) -> dict[str, Any]:
    stock = interpreter.InterpreterBuilder
    builder = interpreter.interpreter_builder
    rest = [name for name in dir(stock) if name.startswith("create_") and name not in _KNOWN]
    kinds = dict.fromkeys(_ELEMENTWISE.split(), _elementwise) | dict.fromkeys(_MOVING.split(), _moving)
    kinds |= dict.fromkeys(rest, _unknown) | {"create_dot": _dot}
    kinds |= dict.fromkeys(_SHAPING.split(), _free) | dict.fromkeys(_ACCESSES.split(), _access)
    return {name: kind(counter, getattr(builder, name)) for name, kind in kinds.items()}


def _passed_on(result: Any, *handles: Any) -> Any:
    """Return ``result``, whose neighbours Triton does not know if it does not know those of one of ``handles``."""
    if any(getattr(handle, "opaque", False) for handle in handles):
        result.opaque = True
    return result


def _computed(result: Any) -> Any:
    for tensor in result if isinstance(result, tuple | list) else (result,):
        tensor.handle.opaque = True
    return result


def _free(_counter: Counter, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda first, *rest: _passed_on(function(first, *rest), first)


def _access(counter: Counter, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(pointers: Any, *rest: Any, **options: Any) -> Any:
        counter.opaque = getattr(pointers, "opaque", False)
        result = function(pointers, *rest, **options)
        if result is not None and result.data.size > 1:
            result.opaque = True
        return result

    return call


def words(data: Any) -> int:
    """Return how many 32-bit words, at least one an element, an array takes."""
    return int(data.size * max(1, data.itemsize // WORD))


def _elementwise(counter: Counter, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(first: Any, *rest: Any) -> Any:
        result = function(first, *rest)
        # A comparison of 64-bit words has a narrow result. A pointer is as good as its 32-bit offset.
        wide = 2 if max(first.data.itemsize, result.data.itemsize) > WORD and not first.dtype.is_ptr() else 1
        counter.own["operations"] += wide * result.data.size
        if getattr(first, "opaque", False):
            _spill(counter, result.data)
        if rest and callable(rest[-1]) and rest[-1] not in _LINEAR:
            result.opaque = True
        return _passed_on(result, first, *rest)

    return call


def _moving(counter: Counter, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(first: Any, *rest: Any) -> Any:
        result = function(first, *rest)
        parts = result if isinstance(result, tuple) else (result,)
        counter.own["exchanged"] += sum(words(part.data) for part in parts)
        for part in parts:
            part.opaque = True
        return result

    return call


def _dot(counter: Counter, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(left: Any, right: Any, *rest: Any) -> Any:
        result = function(left, right, *rest)
        counter.own["exchanged"] += words(left.data) + words(right.data)
        counter.own["waits"] += 1
        # As if each lane multiplied and added: a GPU's units for matrices are faster, but not for all types.
        counter.own["operations"] += words(result.data) * left.data.shape[-1]
        return result

    return call


def _unknown(counter: Counter, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        arrays = [value.data for value in (*args, result) if hasattr(getattr(value, "data", None), "itemsize")]
        counter.own["scanned"] += max(map(words, arrays), default=1)
        counter.own["waits"] += 1
        return result

    return call


def _scan(counter: Counter, stock: Callable[..., Any]) -> Callable[..., Any]:
    def apply_impl(scan: Any, tensors: Any) -> Any:
        before, moved = counter.own["operations"], counter.own["bytes"]
        result = stock(scan, tensors)
        own = counter.own["operations"] - before
        counter.own["bytes"] = moved
        data = tensors[0].handle.data
        length = data.shape[scan.axis]
        # The interpreter combines all elements at once, as often as the length can be halved.
        doublings = max(1, math.ceil(math.log2(length)))
        factor = COMBINES if scan.one_by_one else min(1, COMBINES / doublings)
        counter.own["operations"] = before + int(own * factor)
        held = data.size // (LANES * counter.warps)
        along = data.ndim > 1 and held > HELD
        by_function = held > HELD_BY_FUNCTION and scan.combine_fn != tl.standard._sum_combine  # noqa: SLF001 - there is no other name
        # Every thread adds up what the other warps have: at 8 warps 1.37 times what it takes at 4 was measured.
        times = counter.spread * (DEAR if scan.reverse or along or by_function else 1) * max(1, (4 + counter.warps) / 8)
        _across(counter, "scanned", tensors, None if along else scan.axis, times)
        return _computed(result)

    return apply_impl


def _reduction(counter: Counter, stock: Callable[..., Any]) -> Callable[..., Any]:
    def apply_impl(reduction: Any, tensors: Any) -> Any:
        _across(counter, "reduced", tensors, reduction.axis, counter.spread)
        return _computed(stock(reduction, tensors))

    return apply_impl


def _spill(counter: Counter, data: Any) -> None:
    """Count that a result is written to memory and read again, if a thread's part of it takes half its registers."""
    threads = LANES * counter.warps
    if 2 * data.size > threads * min(255, REGISTERS // threads):
        counter.own["bytes"] += 2 * WORD * words(data)


def _across(counter: Counter, kind: str, tensors: Any, axis: int | None, times: float) -> None:
    for tensor in tensors:
        data = tensor.handle.data
        counter.own["operations"] += words(data)
        _spill(counter, data)
        if not _within_thread(data, axis):
            counter.own[kind] += int(times * words(data))
    counter.own["waits"] += not _within_thread(tensors[0].handle.data, axis)


def _within_thread(data: Any, axis: int | None) -> bool:
    """Whether all that is combined is neighbours on the last axis that one thread holds."""
    if axis is None:
        return bool(data.size * data.itemsize <= VECTOR)
    return axis == data.ndim - 1 and bool(data.shape[axis] * data.itemsize <= VECTOR)
