"""The form in which a model crosses to the scorer: a JSON list of operators, and tensors as safetensors.

``{"format": 1, "tensors": {name: [dtype, shape]}, "nodes": [...], "output": {"node": 7}}``, a node being ``{"op",
"args", "kwargs", "name", "where"}``. An argument is an integer, a finite float, a boolean, null, a list, or a
reference: ``{"node": 3}`` to an earlier node, ``{"tensor": name}``, ``{"input": 0}`` to the tokens. The reader takes
nothing else: what it returns has only names of the table with arguments that fit the operator's own schema.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from .allowed import DTYPES, GETITEM, TABLE
from .refusal import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["FORMAT", "INPUT", "MAX_NODES", "Graph", "Node", "Reference", "TensorSpec", "dump", "parse", "references"]

FORMAT = 1
MAX_NODES = 4096
MAX_TENSORS = 4096
MAX_BYTES = 3 << 20
"""Of the JSON text; an answer from a sandbox may have a little more."""

_MAX_LIST = 4096
_MAX_DIMENSIONS = 16
_MAX_NAME = 200
_NODE_KEYS = {"op", "args", "kwargs", "name", "where"}
_GRAPH_KEYS = {"format", "tensors", "nodes", "output"}
_RESERVED = {"dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking", "implicit"}
"""Arguments that no operator may have: they convert, or say where a tensor lies, which is ours to say."""


@dataclass(frozen=True)
class Reference:
    """A tensor that an operator takes."""

    kind: Literal["node", "tensor", "input"]
    key: int | str
    """The number of a node, the name of a tensor, or 0."""


INPUT = Reference("input", 0)
"""The tokens."""


@dataclass(frozen=True)
class TensorSpec:
    """What a tensor of the model is."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Its size."""
        return math.prod(self.shape) * int(DTYPES[self.dtype].itemsize)


@dataclass(frozen=True)
class Node:
    """One operator with its arguments; a position in ``args`` holds a number, None, a reference, or a list of these."""

    op: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    where: str = ""
    """Where it stands in the model's source, such as ``model.py:31``."""


@dataclass(frozen=True)
class Graph:
    """A model as a list of operators; every reference is to something earlier."""

    tensors: Mapping[str, TensorSpec]
    nodes: Sequence[Node]
    output: Reference

    @property
    def parameters(self) -> int:
        """The number of floating point values of all tensors."""
        return sum(math.prod(spec.shape) for spec in self.tensors.values() if spec.dtype == "float32")

    @property
    def bytes(self) -> int:
        """The size of all tensors."""
        return sum(spec.bytes for spec in self.tensors.values())


def dump(graph: Graph) -> str:
    """Return the JSON text of ``graph``."""
    nodes = [
        {
            "op": node.op,
            "args": [_plain(value) for value in node.args],
            "kwargs": {name: _plain(value) for name, value in node.kwargs.items()},
            "name": node.name,
            "where": node.where,
        }
        for node in graph.nodes
    ]
    tensors = {name: [spec.dtype, list(spec.shape)] for name, spec in graph.tensors.items()}
    whole = {"format": FORMAT, "tensors": tensors, "nodes": nodes, "output": _plain(graph.output)}
    return json.dumps(whole, allow_nan=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, Reference):
        return {value.kind: value.key}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def references(value: Any) -> Iterator[Reference]:
    """Yield the references in an argument, or in a list of arguments."""
    if isinstance(value, Reference):
        yield value
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from references(entry)


def parse(text: str) -> Graph:
    """Read a graph that nobody vouches for.

    Raises:
        RefusedError: if it is malformed, too large, or has an operator or argument that is not allowed; the text
            names the operator and the line of the model that it claims to come from.
    """
    if len(text) > MAX_BYTES:
        raise RefusedError(f"the graph has {len(text):,} characters; at most {MAX_BYTES:,} are allowed")
    if not text.isascii():
        _malformed("it has characters beyond ASCII; JSON can escape them")
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        _malformed(f"it is not JSON ({str(error)[:_MAX_NAME]})")
    if not isinstance(data, dict) or set(data) != _GRAPH_KEYS or data["format"] != FORMAT:
        _malformed(f"it must be an object of format {FORMAT} with {', '.join(sorted(_GRAPH_KEYS))}")
    tensors, entries = _tensors(data["tensors"]), data["nodes"]
    if not isinstance(entries, list) or len(entries) > MAX_NODES:
        _malformed(f"nodes must be a list of at most {MAX_NODES:,} operators")
    reader = _Reader(tensors)
    for entry in entries:
        reader.read(entry)
    try:
        output = reader.value(data["output"])
    except ValueError as error:
        _malformed(f"output: {error}")
    if not _is_tensor(output, reader.many):
        _malformed("output must refer to one tensor")
    return Graph(tensors, reader.nodes, output)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _malformed(why: str) -> NoReturn:
    raise RefusedError(f"the graph is malformed: {why}")


def _tensors(data: Any) -> dict[str, TensorSpec]:
    if not isinstance(data, dict) or len(data) > MAX_TENSORS:
        _malformed(f"tensors must be an object of at most {MAX_TENSORS:,} entries")
    specs = {}
    for name, entry in data.items():
        dtype, shape = entry if isinstance(entry, list) and len(entry) == 2 else ("", [])  # noqa: PLR2004 - a pair
        fits = _is_dtype(dtype) and isinstance(shape, list) and len(shape) <= _MAX_DIMENSIONS
        fits = fits and all(_is_int(size) and size >= 0 for size in shape)
        # Torch computes strides as if no size were zero.
        if not _is_text(name) or not fits or not _is_int(math.prod(max(size, 1) for size in shape)):
            _malformed(f"tensor {str(name)[:_MAX_NAME]!r} must have a name, one of {', '.join(DTYPES)} and a shape")
        specs[name] = TensorSpec(dtype, tuple(shape))
    return specs


class _Reader:
    """Reads node after node, knowing what there is to refer to."""

    def __init__(self, tensors: Mapping[str, TensorSpec]) -> None:
        self._tensors = tensors
        self.nodes: list[Node] = []
        self.many: list[bool] = []

    def read(self, entry: Any) -> None:
        number = len(self.nodes)
        if not isinstance(entry, dict) or set(entry) != _NODE_KEYS:
            _malformed(f"node {number} must have exactly {', '.join(sorted(_NODE_KEYS))}")
        op, name, where = entry["op"], entry["name"], entry["where"]
        if not all(_is_text(text) for text in (op, name, where)):
            _malformed(f"node {number}: op, name and where must be short texts")
        if op != GETITEM and op not in TABLE:
            raise RefusedError.at(where, op, "this operator is not allowed")
        args, kwargs = entry["args"], entry["kwargs"]
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise RefusedError.at(where, op, "args must be a list and kwargs an object")
        try:
            node = Node(op, tuple(map(self.value, args)), {k: self.value(v) for k, v in kwargs.items()}, name, where)
            self._check(node)
        except ValueError as error:
            raise RefusedError.at(where, op, str(error)) from None
        self.nodes.append(node)
        self.many.append(op != GETITEM and TABLE[op].many)

    def value(self, data: Any, depth: int = 0) -> Any:
        """Return an argument, its references resolved."""
        if isinstance(data, dict):
            return self._reference(data)
        if isinstance(data, list):
            if depth or len(data) > _MAX_LIST:
                raise ValueError(f"lists may not be nested or have more than {_MAX_LIST:,} entries")
            return [self.value(entry, depth + 1) for entry in data]
        if data is None or isinstance(data, bool | str) or _is_number(data):
            return data
        raise ValueError("numbers must be finite and integers fit into 64 bits")

    def _reference(self, data: dict[str, Any]) -> Reference:
        if len(data) == 1:
            ((kind, key),) = data.items()
            if kind == "node" and _is_int(key) and 0 <= key < len(self.nodes):
                return Reference("node", key)
            if kind == "tensor" and isinstance(key, str) and key in self._tensors:
                return Reference("tensor", key)
            if kind == "input" and _is_int(key) and key == 0:
                return INPUT
        raise ValueError(f"{str(data)[:_MAX_NAME]} refers to nothing that is there before it")

    def _check(self, node: Node) -> None:
        """Hold the arguments to the operator's schema; raise ValueError if they do not fit."""
        if node.op == GETITEM:
            self._check_getitem(node)
            return
        schema = list(TABLE[node.op].call._schema.arguments)  # noqa: SLF001 - torch has no other way to ask
        positional = [argument for argument in schema if not argument.kwarg_only]
        if len(node.args) > len(positional):
            raise ValueError(f"it takes at most {len(positional)} positional arguments, got {len(node.args)}")
        given = dict(zip((argument.name for argument in positional), node.args, strict=False))
        if twice := sorted(given.keys() & node.kwargs.keys()):
            raise ValueError(f"argument {twice[0]!r} is given twice")
        given |= node.kwargs
        if node.op == "aten.full.default" and not _is_dtype(given.pop("dtype", None)):
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}")
        for argument in schema:
            if argument.name in given and argument.name not in _RESERVED:
                self._check_value(node.op, argument.name, str(argument.type), given.pop(argument.name))
            elif argument.name not in given and not argument.has_default_value():
                raise ValueError(f"argument {argument.name!r} is missing")
        if given:
            raise ValueError(f"argument {min(given)[:_MAX_NAME]!r} is not allowed")

    def _check_value(self, op: str, name: str, wanted: str, value: Any) -> None:
        if TABLE[op].kind == "arithmetic" and name == "other" and _is_number(value):
            return  # torch takes a number in the place of the second tensor
        check = _TYPES.get(wanted)
        if check is None or not check(value, self.many):
            raise ValueError(f"argument {name!r} must be {wanted}, got {str(value)[:_MAX_NAME]}")

    def _check_getitem(self, node: Node) -> None:
        source, index = node.args if len(node.args) == 2 else (None, -1)  # noqa: PLR2004 - a pair
        several = isinstance(source, Reference) and source.kind == "node" and self.many[int(source.key)]
        if not several or not _is_int(index) or index < 0 or node.kwargs:
            raise ValueError("it must take a piece, by its number, of an operator with several results")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_NAME and value.isprintable()


def _is_dtype(value: Any) -> bool:
    return isinstance(value, str) and value in DTYPES


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63


def _is_number(value: Any) -> bool:
    return _is_int(value) or (isinstance(value, float) and math.isfinite(value))


def _is_tensor(value: Any, many: Sequence[bool]) -> bool:
    return isinstance(value, Reference) and not (value.kind == "node" and many[int(value.key)])


def _optional(check: Callable[[Any, Sequence[bool]], bool]) -> Callable[[Any, Sequence[bool]], bool]:
    return lambda value, many: value is None or check(value, many)


def _list(check: Callable[[Any, Sequence[bool]], bool]) -> Callable[[Any, Sequence[bool]], bool]:
    return lambda value, many: isinstance(value, list) and all(check(entry, many) for entry in value)


def _integer(value: Any, _many: Sequence[bool]) -> bool:
    return _is_int(value)


_TYPES: dict[str, Callable[[Any, Sequence[bool]], bool]] = {
    "Tensor": _is_tensor,
    "Optional[Tensor]": _optional(_is_tensor),
    "List[Tensor]": _list(_is_tensor),
    "List[Optional[Tensor]]": _list(_optional(_is_tensor)),
    "int": _integer,
    "Optional[int]": _optional(_integer),
    "List[int]": _list(_integer),
    "Optional[List[int]]": _optional(_list(_integer)),
    "bool": lambda value, _many: isinstance(value, bool),
    "number": lambda value, _many: _is_number(value),
}
"""By the name of a type in a schema of ATen: whether a value is of that type."""
