"""The allow-list for the source text of kernels: what the meter is willing to execute.

Every syntax node must be of an allowed kind, every name must be local, bound or one of eight builtins, and attributes
come from the tables in :mod:`kernel_names`. What passes can compute on blocks, load and store, and nothing more: it
cannot reach NumPy through a block's handle, import, keep state between programs or define functions. The tree that
was checked is the tree that runs; text, comments, decorators and annotations are dropped first.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NoReturn

from re_bench.guest.refused import RefusedError

from triton_cumsum.harness.kernel_names import ATTRIBUTES, BUILTINS, MODULES, SUBMODULES
from triton_cumsum.harness.trace_codec import INTEGERS, STRING

if TYPE_CHECKING:
    from collections.abc import Mapping

SOURCE_LENGTH = 64 * 1024
RESERVED = "interpreter_semantic"

_STATEMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.If, ast.For, ast.While, ast.Return, ast.Pass)
_OTHER_STATEMENTS = (ast.Assert,)
_EXPRESSIONS = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice, ast.Tuple)
_MORE_EXPRESSIONS = (ast.List, ast.Call, ast.keyword, ast.Attribute, ast.Name, ast.Constant, ast.Load, ast.Store)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)
_LOGIC = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.And, ast.Or, ast.Not, ast.Invert, ast.USub, ast.UAdd)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot)
NODES = frozenset(
    _STATEMENTS + _OTHER_STATEMENTS + _EXPRESSIONS + _MORE_EXPRESSIONS + _ARITHMETIC + _LOGIC + _COMPARISONS
)


def parse(source: str) -> tuple[ast.FunctionDef, list[str]]:
    """Return the function that ``source`` defines, normalised, and the names of its ``tl.constexpr`` parameters.

    Decorators, docstrings and annotations are removed.

    Raises:
        RefusedError: if the text is too long, or is not exactly one function with plain parameters.
    """
    if len(source) > SOURCE_LENGTH:
        raise RefusedError(f"the source of a kernel has more than {SOURCE_LENGTH} characters")
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RefusedError(f"the source of a kernel cannot be parsed: {error!r}") from error
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        raise RefusedError("the source of a kernel must be exactly one function (def)")
    return _normalised(body[0])


def free_names(function: ast.FunctionDef) -> set[str]:
    """Return the names that ``function`` reads and does not assign: they must be bound or builtins."""
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    return {name.id for name in names if isinstance(name.ctx, ast.Load)} - _local_names(function)


def check(function: ast.FunctionDef, bindings: Mapping[str, Any]) -> None:
    """Check a function of :func:`parse` against the allow-list.

    ``bindings`` gives what each global name stands for, ``{"module": name}``, ``{"value": ...}`` or
    ``{"function": index}``, as in a trace.

    Raises:
        RefusedError: naming the function, the line within it and the construct.
    """
    modules = {name: binding["module"] for name, binding in bindings.items() if "module" in binding}
    callables = {name for name, binding in bindings.items() if "function" in binding}
    checker = _Checker(function, modules, callables, set(bindings))
    try:
        checker.check_body()
    except RecursionError as error:
        raise RefusedError(f"kernel {function.name}: its expressions are nested too deeply") from error


def _normalised(function: ast.FunctionDef) -> tuple[ast.FunctionDef, list[str]]:
    if len(function.name) > STRING:
        raise RefusedError(f"a kernel has a name of {len(function.name)} characters; {STRING} are allowed")
    spec = function.args
    if spec.vararg or spec.kwarg or spec.kwonlyargs or spec.posonlyargs:
        raise RefusedError(f"kernel {function.name}: only plain positional parameters are allowed")
    constexprs = [parameter.arg for parameter in spec.args if _is_constexpr(function.name, parameter)]
    for parameter in spec.args:
        parameter.annotation = None
    function.decorator_list, function.returns = [], None
    if hasattr(function, "type_params"):  # from Python 3.12
        function.type_params = []
    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef | ast.If | ast.For | ast.While):
            _drop_text(node)
        if isinstance(node, ast.AnnAssign):
            # Never evaluated, but a yield or an assignment in it would still change what the function is.
            node.annotation = ast.copy_location(ast.Constant(value=None), node.annotation)
    return function, constexprs


def _is_constexpr(name: str, parameter: ast.arg) -> bool:
    if parameter.annotation is None:
        return False
    if not ast.unparse(parameter.annotation).strip("'\"").endswith("constexpr"):
        raise RefusedError(
            f"kernel {name}: on a GPU nothing but tl.constexpr may annotate a parameter; change that of {parameter.arg}"
        )
    return True


def _drop_text(node: ast.FunctionDef | ast.If | ast.For | ast.While) -> None:
    kept = [item for item in node.body if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))]
    node.body = kept or [ast.copy_location(ast.Pass(), node)]


def _local_names(function: ast.FunctionDef) -> set[str]:
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {parameter.arg for parameter in function.args.args}


class _Checker(ast.NodeVisitor):
    """Walks one function; any node without a word in its favour is refused."""

    def __init__(
        self, function: ast.FunctionDef, modules: Mapping[str, str], callables: set[str], bound: set[str]
    ) -> None:
        self.function = function
        self.modules = modules
        self.callables = callables
        self.local = _local_names(function)
        self.names = self.local | bound | BUILTINS

    def refuse(self, node: ast.AST, what: str) -> NoReturn:
        """Raise the refusal of ``node``."""
        line = getattr(node, "lineno", self.function.lineno) - self.function.lineno + 1
        raise RefusedError(f"kernel {self.function.name}, line {line} of the function: {what}")

    def check_body(self) -> None:
        """Check the names that the function makes, its defaults and its statements."""
        for name in sorted(self.local | {self.function.name}):
            if name.startswith("__") or name == RESERVED or name in self.modules:
                self.refuse(self.function, f"the name {name!r} may not be assigned")
        for default in self.function.args.defaults:
            if not isinstance(default, ast.Constant):
                self.refuse(default, "a default value must be a constant")
        for node in [*self.function.args.defaults, *self.function.body]:
            self.visit(node)

    def visit(self, node: ast.AST) -> None:
        """Refuse kinds of nodes that are not in the table, then look closer."""
        if type(node) not in NODES:
            self.refuse(node, f"{type(node).__name__} is not allowed in a kernel in the cpu profile")
        super().visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Allow assignments to names, and to tuples of names."""
        for target in node.targets:
            self._check_target(target)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Allow augmented assignments to names."""
        self._check_target(node.target)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Allow annotated assignments to names; the annotation is never evaluated."""
        self._check_target(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_For(self, node: ast.For) -> None:
        """Allow loops over a name."""
        self._check_target(node.target)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """Allow known names; a module may only stand before a dot."""
        if node.id not in self.names:
            self.refuse(node, f"the name {node.id!r} is not known; allowed builtins are {', '.join(sorted(BUILTINS))}")
        if node.id in self.modules:
            self.refuse(node, f"the module {node.id} is used as a value")

    def visit_Constant(self, node: ast.Constant) -> None:
        """Allow ``None``, booleans, 64-bit integers, floats and short strings."""
        value = node.value
        if isinstance(value, str) and len(value) > STRING:
            self.refuse(node, f"a string of {len(value)} characters; {STRING} are allowed")
        if isinstance(value, int) and value not in INTEGERS:
            self.refuse(node, "an integer beyond 64 bits")
        if value is not None and not isinstance(value, bool | int | float | str):
            self.refuse(node, f"a constant of type {type(value).__name__} is not allowed")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Allow the public names of Triton's modules, and the listed attributes of blocks and types."""
        module = self._module(node.value)
        if module is not None:
            if node.attr not in MODULES[module]:
                self.refuse(node, f"{module}.{node.attr} is not allowed in the cpu profile")
            return
        if node.attr not in ATTRIBUTES:
            self.refuse(node, f"the attribute .{node.attr} is not allowed in the cpu profile")
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """Allow calls of Triton's functions, methods of blocks, builtins and other kernels' functions."""
        target = node.func
        if isinstance(target, ast.Name):
            if target.id in self.local or target.id not in self.callables | BUILTINS:
                self.refuse(node, f"{target.id!r} may not be called; it is no @triton.jit function or allowed builtin")
        elif not isinstance(target, ast.Attribute):
            self.refuse(node, "only named functions may be called")
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg.startswith("_"):
                self.refuse(node, f"the keyword argument {keyword.arg or '**'!r} is not allowed")
        self.generic_visit(node)

    def _check_target(self, target: ast.expr) -> None:
        elements = target.elts if isinstance(target, ast.Tuple) else [target]
        for element in elements:
            if not isinstance(element, ast.Name):
                self.refuse(target, "only names can be assigned to; write memory with tl.store")

    def _module(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            return self.modules.get(node.id)
        if isinstance(node, ast.Attribute):
            return SUBMODULES.get((self._module(node.value) or "", node.attr))
        return None
