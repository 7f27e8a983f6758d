"""A package's modules without what its ``__init__`` imports."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any


def defer_init(name: str) -> None:
    """Have a package's ``__init__`` run when something of it is first asked for.

    The import of a module that lies in the package does not run it. Nothing happens if the package is imported
    already, or not installed.

    Args:
        name: the package's.
    """
    spec = importlib.util.find_spec(name) if name not in sys.modules else None
    if spec is None or (loader := spec.loader) is None:
        return
    package = importlib.util.module_from_spec(spec)

    def run_init(attribute: str) -> Any:
        if vars(package).pop("__getattr__", None) is not None:
            loader.exec_module(package)
        try:
            return vars(package)[attribute]
        except KeyError:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}") from None

    vars(package)["__getattr__"] = run_init
    sys.modules[name] = package
