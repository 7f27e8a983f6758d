"""A fast path for ``+``, ``<`` and the like in Triton's interpreter, for operands of one signed integer type.

The stock interpreter finds out for each operation that there is nothing to convert. Both end in the same function of
the builder, where the operation is done and counted; all other operands take the slow path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

if TYPE_CHECKING:
    from collections.abc import Callable

_INTEGERS: dict[str, Any] = {tl.int32.name: np.dtype(np.int32), tl.int64.name: np.dtype(np.int64)}
_SMALL = range(-(2**31), 2**31)
_ARITHMETIC = {
    "__add__": "create_add",
    "__sub__": "create_sub",
    "__mul__": "create_mul",
    "__and__": "create_and",
    "__or__": "create_or",
    "__xor__": "create_xor",
}
_COMPARISONS = {
    "__lt__": "create_icmpSLT",
    "__le__": "create_icmpSLE",
    "__gt__": "create_icmpSGT",
    "__ge__": "create_icmpSGE",
    "__eq__": "create_icmpEQ",
    "__ne__": "create_icmpNE",
}
_SHIFTS = {"__lshift__": "create_shl", "__rshift__": "create_ashr"}


def fast_path(name: str, slow_path: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method ``name`` of a Triton tensor, which takes the fast path if it can, else the ``slow_path``."""
    function = (_ARITHMETIC | _COMPARISONS | _SHIFTS).get(name)
    if function is None:
        return slow_path
    builder, compares, adds = interpreter.interpreter_builder, name in _COMPARISONS, name == "__add__"

    def method(left: Any, right: Any) -> Any:
        moves = adds and left.dtype.is_ptr()
        handle = _offset(right) if moves else operand(left, right)
        kind = None if handle is None else _common(left.type, right)
        if kind is None:
            return slow_path(left, right)
        result = getattr(builder, "create_addptr" if moves else function)(left.handle, handle)
        return tl.core.tensor(result, _truth_like(kind) if compares else kind)

    return method


def operand(left: Any, right: Any) -> Any:
    """Return the handle of ``right`` as an operand for ``left``, or nothing if a type has to change.

    That is: ``left`` is of int32 or int64 and ``right`` of the same type or a number. The handle has its own shape.
    """
    dtype = _INTEGERS.get(left.dtype.name)
    if dtype is None:
        return None
    if type(right) is int and right in _SMALL:
        return interpreter.TensorHandle(np.array([right], dtype), left.dtype)
    return right.handle if type(right) is tl.core.tensor and right.dtype is left.dtype else None


def spread(data: Any, kind: Any) -> Any:
    """Return an array of one element as a block of the shape of ``kind``, whose elements all lie at one address."""
    shape = tuple(kind.shape.values)
    return np.ndarray(shape, data.dtype, data, 0, (0,) * len(shape))


def _offset(right: Any) -> Any:
    if type(right) is int and right in _SMALL:
        return interpreter.TensorHandle(np.array([right], np.int32), tl.int32)
    return right.handle if type(right) is tl.core.tensor and right.dtype.name in _INTEGERS else None


def _common(left: Any, right: Any) -> Any:
    """Return the type of ``left`` with the shape that NumPy gives to both, or nothing where Triton may differ."""
    other = left if type(right) is int else right.type
    if not other.is_block() or (left.is_block() and left.shape is other.shape):
        return left
    if not left.is_block() or len(left.shape.values) != len(other.shape.values):
        return None
    pairs = list(zip(left.shape.values, other.shape.values, strict=True))
    if any(a != b and 1 not in {a, b} for a, b in pairs):
        return None
    return tl.core.block_type(left.element_ty, [b if a == 1 else a for a, b in pairs])


def _truth_like(kind: Any) -> Any:
    return tl.core.block_type(tl.int1, kind.shape) if kind.is_block() else tl.int1
