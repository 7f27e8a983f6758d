"""The docstrings of a source, cleaned by rules of our own, so that no version of Python changes them."""

from __future__ import annotations

import ast
import warnings

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings_of(source: str) -> list[str]:
    """Return the docstrings of module, classes and functions, cleaned, in the order of the source.

    A source that does not parse has none.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # escapes that old code has wrong
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    texts = [_docstring(tree)]
    waiting: list[ast.AST] = [*reversed(tree.body)]
    while waiting:
        statement = waiting.pop()
        texts.append(_docstring(statement))
        for field in ("finalbody", "orelse", "handlers", "cases", "body"):
            waiting.extend(reversed(getattr(statement, field, ())))
    return [text for text in texts if text]


def clean(docstring: str) -> str:
    """Return a docstring without the indentation of its code, trailing spaces, and empty lines at its ends.

    Lone surrogates, which UTF-8 cannot hold, become question marks.
    """
    lines = docstring.encode("utf-8", "replace").decode().expandtabs().split("\n")
    indents = [len(line) - len(line.lstrip(" ")) for line in lines[1:] if line.strip()]
    margin = min(indents, default=0)
    return "\n".join([lines[0].strip(), *(line[margin:].rstrip() for line in lines[1:])]).strip("\n")


def _docstring(node: ast.AST) -> str:
    if not isinstance(node, _DOCUMENTED) or not node.body:
        return ""
    match node.body[0]:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return clean(text)
    return ""
