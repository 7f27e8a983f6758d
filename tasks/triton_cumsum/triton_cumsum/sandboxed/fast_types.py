"""Shortcuts through the types of Triton's interpreter: the same values, without building the same types again.

The stock interpreter spends most of its time on tables of types, shapes and checks that it makes anew for each
operation. Here each shape is checked and built once, and a scalar is spread over a block without copying it.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from triton_cumsum.sandboxed.fast_operators import fast_path, operand, spread

if TYPE_CHECKING:
    from collections.abc import Callable

core = tl.core
_STOCK_NUMPY_DTYPE = interpreter._get_np_dtype  # noqa: SLF001 - the interpreter's own table of types
_STOCK_BLOCK_INIT = core.block_type.__init__
_STOCK_UNWRAP = core._unwrap_if_constexpr  # noqa: SLF001 - as above
_STOCK_BROADCAST = interpreter.TritonSemantic.broadcast_impl_value
_STOCK_TUPLE_EQUAL = core.tuple.__eq__
_STOCK_TYPE_EQUAL = core.dtype.__eq__
_STOCK_HANDLE_CHECK = interpreter.TensorHandle.__post_init__
_STOCK_PAIR = interpreter.TritonSemantic.binary_op_type_checking_impl
_PLAIN = frozenset({core.tensor, core.block_type, core.dtype, core.pointer_type, int, float, bool, str, type(None)})
_dtypes: dict[str, Any] = {}
_shapes: dict[tuple[int, ...], tuple[Any, ...]] = {}


def install() -> None:
    """Patch the interpreter of this process; doing so twice changes nothing."""
    # Bare names inside the interpreter's modules, which it looks up at each call.
    interpreter._get_np_dtype = numpy_dtype  # noqa: SLF001
    interpreter._patch_attr = _patch_attribute  # noqa: SLF001
    core._unwrap_if_constexpr = _unwrapped  # noqa: SLF001
    core.block_type.__init__ = _block_init
    core.block_type.name = property(_block_name)
    core.block_type.to_ir = _block_to_ir
    core.dtype.__eq__ = _type_equal
    core.tensor.__init__ = _tensor_init
    core.tuple.__eq__ = _tuple_equal
    interpreter.TensorHandle.__init__ = _handle_init
    interpreter.InterpreterBuilder.binary_op = _binary_op
    interpreter.InterpreterBuilder.create_broadcast = _create_broadcast
    interpreter.InterpreterBuilder.create_splat = _create_splat
    interpreter.TritonSemantic.broadcast_impl_value = _broadcast
    interpreter.TritonSemantic.binary_op_type_checking_impl = _pair


def numpy_dtype(dtype: Any) -> Any:
    """Return the NumPy type that holds values of a Triton type; pointers are 64-bit words."""
    element = dtype.element_ty if type(dtype) is core.block_type else dtype
    if type(element) is core.pointer_type:
        return _STOCK_NUMPY_DTYPE(element)
    if element.name not in _dtypes:
        _dtypes[element.name] = _STOCK_NUMPY_DTYPE(element)
    return _dtypes[element.name]


def _block_init(block: Any, element: Any, shape: Any) -> None:
    values = shape.values if type(shape) is core.tuple else shape
    key = tuple([value.value if type(value) is core.constexpr else value for value in values])
    if key not in _shapes:
        _shapes[key] = _checked_shape(element, shape)
    block.element_ty = element
    block.shape, block.numel, block.shape_of_tensors, block.numel_of_tensors = _shapes[key]


def _checked_shape(element: Any, shape: Any) -> tuple[Any, ...]:
    checked = _NamedBlock(element, shape)
    lengths = core.tuple([core.constexpr(size) for size in checked.shape])
    return checked.shape, checked.numel, lengths, core.constexpr(checked.numel)


class _NamedBlock:
    """What the stock constructor of a block type can fill in: one whose name is an attribute, no property."""

    def __init__(self, element: Any, shape: Any) -> None:
        self.shape: Any = ()
        self.numel = 0
        _STOCK_BLOCK_INIT(self, element, shape)


def _block_name(block: Any) -> str:
    return f"<{block.shape}, {block.element_ty}>"


_NO_SHAPE = core.tuple([])
_ONE = core.constexpr(1)


def _tensor_init(tensor: Any, handle: Any, kind: Any) -> None:
    tensor.handle, tensor.type, tensor.dtype = handle, kind, kind.scalar
    if kind.is_block():
        tensor.shape, tensor.numel = kind.shape_of_tensors, kind.numel_of_tensors
    else:
        tensor.shape, tensor.numel = _NO_SHAPE, _ONE


def _unwrapped(value: Any) -> Any:
    kind = type(value)
    if kind is core.constexpr:
        return value.value
    return value if kind in _PLAIN else _STOCK_UNWRAP(value)


def _tuple_equal(left: Any, right: Any) -> Any:
    if left is right:
        return core.constexpr(True)  # noqa: FBT003 - the constant itself
    if type(right) is list and all(type(value) is int for value in right):
        return core.constexpr(left.values == right)
    return _STOCK_TUPLE_EQUAL(left, right)


def _type_equal(left: Any, right: Any) -> bool:
    return left is right or bool(_STOCK_TYPE_EQUAL(left, right))


def _block_to_ir(block: Any, _builder: Any) -> Any:
    return block  # what the stock method returns is an equal block


def _handle_init(handle: Any, data: Any, dtype: Any, attr: Any = None) -> None:
    handle.data, handle.dtype, handle.attr = data, dtype, {} if attr is None else attr
    if type(dtype) is not core.dtype or data.itemsize > max(1, dtype.primitive_bitwidth // 8):
        _STOCK_HANDLE_CHECK(handle)


def _binary_op(_builder: Any, left: Any, right: Any, operation: Callable[..., Any]) -> Any:
    result, dtype = operation(left.data, right.data), left.dtype.scalar
    if type(dtype) is core.dtype and result.itemsize > max(1, dtype.primitive_bitwidth // 8):
        result = result.astype(numpy_dtype(dtype))
    return interpreter.TensorHandle(result, dtype)


def _create_broadcast(_builder: Any, argument: Any, shape: Any) -> Any:
    data, sizes = argument.data, tuple([_unwrapped(size) for size in shape])
    if data.ndim == len(sizes) and data.flags.c_contiguous:
        # All of this is checked by the caller; NumPy's own function would check it again, slowly.
        strides = tuple([0 if own == 1 else stride for own, stride in zip(data.shape, data.strides, strict=True)])
        handle = interpreter.TensorHandle(np.ndarray(sizes, data.dtype, data, 0, strides), argument.dtype.scalar)
    else:
        handle = interpreter.TensorHandle(np.broadcast_to(data, sizes), argument.dtype.scalar)
    return handle


def _create_splat(_builder: Any, kind: Any, argument: Any) -> Any:
    return interpreter.TensorHandle(spread(argument.data.reshape(1), kind), argument.dtype.scalar)


def _broadcast(semantic: Any, left: Any, right: Any) -> Any:
    block, other = left.type, right.type
    if type(block) is not core.block_type:
        return _STOCK_BROADCAST(semantic, left, right)
    if type(other) is not core.block_type:
        kind = block if block.element_ty is other else core.block_type(other.scalar, block.shape)
        return left, core.tensor(_create_splat(None, kind, right.handle), kind)
    if block.shape is other.shape:
        return left, right
    sizes = list(zip(block.shape.values, other.shape.values, strict=False))
    if len(block.shape) != len(other.shape) or any(a != b and 1 not in {a, b} for a, b in sizes):
        return _STOCK_BROADCAST(semantic, left, right)
    common = [b if a == 1 else a for a, b in sizes]
    return _widened(left, common), _widened(right, common)


def _widened(tensor: Any, sizes: list[int]) -> Any:
    kind = core.block_type(tensor.type.element_ty, sizes)
    if kind.shape is tensor.type.shape:
        return tensor
    return core.tensor(_create_broadcast(None, tensor.handle, sizes), kind)


def _pair(semantic: Any, left: Any, right: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the operands of a binary operation; two of one common integer type need no thought about types."""
    handle = operand(left, right) if type(left) is core.tensor else None
    if handle is None:
        return _STOCK_PAIR(semantic, left, right, *args, **kwargs)
    if type(right) is int:
        right = core.tensor(handle, left.dtype)
    return _broadcast(semantic, left, right)


def _patch_attribute(owner: Any, name: str, member: Any, _builder: Any, scope: Any) -> None:
    """Replace a builtin by one that needs no ``_semantic``, past the wrapper that only checks that it is given."""
    function = _bound(inspect.unwrap(member))
    scope.set_attr(owner, name, fast_path(name, function) if owner is core.tensor else function)


def _bound(function: Callable[..., Any]) -> Callable[..., Any]:
    semantic = interpreter.interpreter_semantic

    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = semantic
        return function(*args, **kwargs)

    return call
