"""For programs that tests start: the SDK ``openreward`` without what nobody here uses.

Its modules for rollouts and judges import the clients of three vendors of models, two thirds of what the start of each
test server would cost. Python imports this module first, where its directory is in ``PYTHONPATH``, and the
``sitecustomize`` that it would have imported otherwise is run from here. The servers of the fixture ``ors_url``
and of whole episodes take the SDK as it is.
"""

import runpy
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType


class _Unused:
    """Stands for a class of the SDK that is imported and not used."""


for _name, _classes in (("openreward.api.rollouts.rollout", ("Rollout", "RolloutAPI")), ("openreward.judging", ())):
    _module = ModuleType(_name)
    for _class in _classes:
        setattr(_module, _class, _Unused)
    sys.modules[_name] = _module

if __name__ == "sitecustomize":
    _others = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).resolve().parent]
    _spec = PathFinder.find_spec("sitecustomize", _others)
    if _spec is not None and _spec.origin is not None:
        runpy.run_path(_spec.origin)
