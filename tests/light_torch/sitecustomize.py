"""For programs that tests start: torch without its compiler, which none of them uses, and without hunts for garbage.

The first optimizer of a process imports the compiler to say that it is not to compile it, which takes longer than all
of torch; and what is imported stays, so that looking there for garbage, also once more at the end, is for nothing.
Python imports this module first, where its directory is in ``PYTHONPATH``, and the ``sitecustomize`` that it would have
imported otherwise is run from here. A program that compiles or exports a model fails with this, and says so.
"""

import atexit
import gc
import runpy
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

_ALLOCATIONS = 100_000
"""More than a test's program makes between two searches of its own for garbage; torch makes some times as many."""


def _as_it_is(function: object = None, *_how: object, **_settings: object) -> object:
    """Return a function that is not to be compiled."""
    return function


def _do_nothing(*_message: object) -> None:
    """Divide a graph of the compiler, where there is none."""


_compiler = ModuleType("torch._dynamo", "Stands for torch's compiler: see tests/light_torch.")
_compiler.disable = _as_it_is  # type: ignore[attr-defined]
_compiler.graph_break = _do_nothing  # type: ignore[attr-defined]
sys.modules[_compiler.__name__] = _compiler
gc.set_threshold(_ALLOCATIONS)
atexit.register(gc.freeze)

if __name__ == "sitecustomize":
    _others = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).resolve().parent]
    _spec = PathFinder.find_spec("sitecustomize", _others)
    if _spec is not None and _spec.origin is not None:
        runpy.run_path(_spec.origin)
